import { defineConfig } from 'ensemble-orchestrator';
import { embeddedPdf } from 'ensemble-orchestrator/pdf';

export default defineConfig({ pdf: embeddedPdf() });
