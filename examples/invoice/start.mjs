/** Makes an invoice, reads it back from the store, and says what it is. With a path as argument, it writes the PDF there. */
import { writeFile } from 'node:fs/promises';
import { createOrchestrator, memoryStorage } from 'ensemble-orchestrator';
import { loadProject } from 'ensemble-orchestrator/node';

const storage = memoryStorage();
const orchestrator = createOrchestrator({ ...(await loadProject(new URL('.', import.meta.url))), storage });

const { status, output, error } = await orchestrator.execute('make-invoice', {
  number: '2026-0042',
  customer: 'Zażółć & Synowie <Łódź>',
  lines: [
    { text: 'Consulting, September', cents: 96_000 },
    { text: 'Hosting of the shop, a year', cents: 24_000 },
  ],
});
if (status !== 'completed') throw new Error(error?.message);
console.log(status, output);

const stored = await storage.objects.get(output.key);
console.log(stored.contentType, Buffer.from(stored.content).subarray(0, 5).toString());
if (process.argv[2]) await writeFile(process.argv[2], stored.content);
await orchestrator.close();
