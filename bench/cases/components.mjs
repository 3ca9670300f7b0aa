/**
 * An execution of one agent with three texts in its config, 50 at a time. Arguments: `references` (the texts are three components) or `texts` (they are
 * written in the definition), then the storage.
 */

import { importLibrary } from '../library.mjs';
import { storageOf, together } from '../storages.mjs';

const TEXTS = { one: 'Greet {{ name }}.', two: 'Be brief, {{ name }}.', three: 'Goodbye, {{ name }}.' };

export async function setup([what, kind]) {
  const { createOrchestrator, defineOperation } = await importLibrary();
  const written = Object.entries(TEXTS).map(([name, text]) => [
    name,
    what === 'references' ? `prompt://${name}@production` : text,
  ]);
  const keys = Object.keys(TEXTS);
  const orchestrator = createOrchestrator({
    storage: await storageOf(kind),
    operations: [
      defineOperation({
        name: 'read',
        texts: Object.fromEntries(keys.map((key) => [key, 'template'])),
        run: ({ config }) => config.one,
      }),
    ],
    ensembles: [
      {
        name: 'bench',
        flow: [
          { agent: 'a', operation: 'read', input: { name: '${input.name}' }, config: Object.fromEntries(written) },
        ],
      },
    ],
  });
  const { components } = orchestrator;
  if (what === 'references')
    for (const [name, content] of Object.entries(TEXTS)) {
      await components.register({ name, kind: 'prompt' });
      await components.createVersion(name, { version: 'v1.0.0', content });
      await components.deploy(name, { to: 'production', version: 'v1.0.0' });
    }
  await orchestrator.ready();
  return together(async () => {
    const { status, error } = await orchestrator.execute('bench', { name: 'Ada' });
    if (status !== 'completed') throw new Error(error?.message);
  });
}
