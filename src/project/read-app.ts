/** Reads the module of an app that has its options in code: the options, or its orchestrator. */

import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isRecord } from '../engine/base/read-options.ts';
import { MASKING, type ServedDependencies } from '../engine/host/masking.port.ts';
import { nameIn } from './check-project.ts';
import { importModule } from './import-default.ts';
import { isDefinition } from './list-files.ts';
import type { ProjectOptions } from './load-project.ts';

const FORMS =
  'export the options of createOrchestrator as `options` or by default, or the orchestrator as `orchestrator` or by default';

/**
 * @param file - the path of the module, absolute
 * @param directory - the project folder, whose files the app may read by itself. Its ensembles are then not among the options
 * @returns the options, or what is wrong with the module
 */
export async function readApp(
  file: string,
  directory: string,
): Promise<{ readonly options: ProjectOptions } | { readonly problem: string }> {
  const imported = await importModule(dirname(file), basename(file));
  if ('problem' in imported) return imported;
  const { default: first, options, orchestrator } = imported.value;
  const found = [options, orchestrator, first].find((one) => one !== undefined);
  if (!isRecord(found)) return { problem: `exports nothing that can be used: ${FORMS}` };
  const served = (found as { readonly [MASKING]?: Partial<ServedDependencies> })[MASKING];
  if (served && !served.options)
    return { problem: 'has an orchestrator of another version of the library; export its options' };
  // A caller has its own.
  const {
    clock: _clock,
    engine: _engine,
    logger: _logger,
    schedules: _schedules,
    ...rest
  } = (served?.options?.() ?? found) as ProjectOptions & { readonly clock?: unknown };
  return { options: await withoutFiles(rest, directory) };
}

async function withoutFiles(options: ProjectOptions, directory: string): Promise<ProjectOptions> {
  const folder = join(directory, 'ensembles');
  const names = await readdir(folder).catch(() => [] as string[]);
  const texts = await Promise.all(names.filter(isDefinition).map((name) => readFile(join(folder, name), 'utf8')));
  const inFiles = new Set(texts.map((text) => nameIn(text)));
  return { ...options, ensembles: (options.ensembles ?? []).filter((one) => !inFiles.has(nameIn(one))) };
}
