/** `ensemble execution export`: a history from a store, which the testing kit replays. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { replay } from '../../src/entries/testing.ts';
import { ensureBuilt } from './cli-process.ts';
import { ensemble } from './in-process.ts';
import { makeProject, serveProject } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

it('prints a history that `replay` takes, from the store and from a server', async () => {
  const { api, cwd, url, token } = await serveProject(makeProject());
  const ran = (await (await api('/execute/ensemble/greet', { input: { who: 'Ada' } })).json()) as {
    executionId: string;
  };
  const { code, stdout } = await ensemble(['execution', 'export', ran.executionId], { cwd });
  const history = JSON.parse(stdout);
  expect([code, history.execution.id, history.status]).toEqual([0, ran.executionId, 'completed']);
  const ensembles = [readFileSync(join(cwd, 'ensembles/greet.yaml'), 'utf8')];
  expect(await replay(history, { ensembles, scripts: { hello: () => null } })).toEqual({ matches: true });
  const remote = await ensemble(['execution', 'export', ran.executionId, '--url', url, '--token', token]);
  expect([remote.code, JSON.parse(remote.stdout)]).toEqual([0, history]);
});
