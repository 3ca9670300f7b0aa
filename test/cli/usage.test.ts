/** The command itself: help, version, wrong usage, and the JSON Schema (contract 10: errors on stderr, wrong usage 2). */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { CLI, ensemble, ensureBuilt, ROOT } from './cli-process.ts';

beforeAll(ensureBuilt, 60_000);

describe('contract 10: usage', () => {
  it.each([
    [['rnu'], "error: unknown command 'rnu'\n(Did you mean run?)", 'ensemble'],
    [['run'], "error: missing required argument 'ensemble'", 'ensemble run'],
    [['run', 'e', '--jsno'], "error: unknown option '--jsno'\n(Did you mean --json?)", 'ensemble run'],
    [['run', 'a', 'b'], 'error: too many arguments', 'ensemble run'],
    [['run', 'e', '--input'], "error: option '--input <json>' argument missing", 'ensemble run'],
    [['token', 'create'], "error: required option '--name <name>' not specified", 'ensemble token create'],
    [['execution', 'shwo'], "error: unknown command 'shwo'\n(Did you mean show?)", 'ensemble execution'],
    [['nonsense'], "error: unknown command 'nonsense'", 'ensemble'],
  ])('%j is wrong usage: exit code 2, what was meant, and whose help says more', async (args, message, command) => {
    const { code, stdout, stderr } = await ensemble(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(stderr).toContain(`Help: ${command} --help`);
    expect(stderr).not.toContain('    at ');
  });

  it('without a command prints its help on stderr, with exit code 2', async () => {
    const { code, stdout, stderr } = await ensemble([]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('Usage: ensemble');
  });

  it.each([[['--help']], [['help']], [['run', '--help']], [['help', 'validate']]])(
    '%j prints help with examples on stdout',
    async (args) => {
      const { code, stdout, stderr } = await ensemble(args);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(/Usage: ensemble.*Examples:\n {2}ensemble /s);
    },
  );

  it('--version is that of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(await ensemble(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('the built file can be started by itself', () => {
    expect(readFileSync(CLI, 'utf8').startsWith('#!/usr/bin/env node\n')).toBe(true);
  });
});

describe('contract 2: ensemble schema', () => {
  it('prints the JSON Schema of definitions', async () => {
    const { code, stdout } = await ensemble(['schema']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      required: ['name', 'flow'],
    });
  });
});
