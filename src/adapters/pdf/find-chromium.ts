/** Finds a Chromium that is installed on this computer. */

import { OrchestratorError } from '../../engine/base/errors.ts';

/** Where the packages of the systems put it. */
const PATHS: Readonly<Record<string, readonly string[]>> = {
  linux: [
    '/usr/bin/chromium',
    '/usr/bin/chromium-browser',
    '/usr/bin/google-chrome',
    '/usr/bin/google-chrome-stable',
    '/usr/bin/microsoft-edge',
    '/snap/bin/chromium',
  ],
  darwin: [
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
    '/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge',
  ],
  win32: [
    'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
    'C:\\Program Files (x86)\\Google\\Chrome\\Application\\chrome.exe',
    'C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe',
  ],
};

const REMEDY =
  'install Chromium (Debian and Ubuntu: `apt-get install chromium`; any system: `npx playwright-core install chromium`), or pass `chromiumPdf({ executablePath })`';

/**
 * @param given - the option `executablePath`
 * @param own - where playwright-core puts a browser that it installs
 * @throws NOT_CONFIGURED if there is none
 */
export async function findChromium(given: string | undefined, own: string): Promise<string> {
  const importModule = (name: string) => import(/* @vite-ignore */ /* webpackIgnore: true */ name);
  const { existsSync } = (await importModule('node:fs')) as typeof import('node:fs');
  const paths = given === undefined ? [...(PATHS[process.platform] ?? []), own] : [given];
  const found = paths.find((path) => path !== '' && existsSync(path));
  if (found !== undefined) return found;
  const message = given === undefined ? 'no Chromium is installed in the usual places' : `there is no file ${given}`;
  throw new OrchestratorError('NOT_CONFIGURED', `chromiumPdf: ${message}; ${REMEDY}`);
}
