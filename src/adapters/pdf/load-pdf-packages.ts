/** Loads the optional packages of the embedded renderer, in its thread. */

import { createRequire } from 'node:module';
import { messageOf } from '../../engine/base/errors.ts';
import type { Convert, Juice } from './convert-html.ts';
import { PDF_PACKAGES } from './find-pdf-packages.ts';
import type { OpenFont } from './fonts.ts';
import type { FontFiles } from './thread-messages.ts';

/** A package that can't be loaded. The message names all that are needed. */
export class MissingPackage extends Error {}

export type PdfPackages = Awaited<ReturnType<typeof loadPdfPackages>>;

/** @throws MissingPackage */
export async function loadPdfPackages() {
  try {
    const [{ default: pdfmake }, { default: convert }, { DOMParser }, parse5, { default: juice }] = await Promise.all([
      import('pdfmake'),
      // @ts-expect-error: the package has no types
      import('html-to-pdfmake') as Promise<{ readonly default: Convert }>,
      import('linkedom'),
      import('parse5'),
      // @ts-expect-error: this file of the package has no types
      import('juice/client.js') as Promise<{ readonly default: Juice }>,
    ]);
    const require = createRequire(import.meta.url);
    // fontkit is a dependency of pdfkit, which is one of pdfmake.
    const ofPdfmake = createRequire(require.resolve('pdfmake'));
    const fontkit = createRequire(ofPdfmake.resolve('pdfkit'))('fontkit') as { create: OpenFont };
    const openFont: OpenFont = (file) => fontkit.create(file);
    return { pdfmake, convert, window: { DOMParser }, parse5, juice, openFont, fonts: findFonts(require) };
  } catch (cause) {
    // The rest of the text has paths of the host.
    const [said] = messageOf(cause).split(/ imported from |\n/, 1);
    const message = `embeddedPdf: a package can't be loaded (${said}); \`npm install ${PDF_PACKAGES.join(' ')}\``;
    throw new MissingPackage(message, { cause });
  }
}

/** The paths of a family's files. */
export type FontPaths = Readonly<Record<keyof FontFiles, string>>;

/** Roboto of pdfmake, and DejaVu Sans for symbols if its package is installed. */
function findFonts(require: NodeJS.Require): Readonly<Record<string, FontPaths>> {
  const family = (name: string, styles: Readonly<Record<keyof FontFiles, string>>): FontPaths => {
    const paths = Object.entries(styles).map(([style, suffix]) => [style, require.resolve(`${name}${suffix}.ttf`)]);
    return Object.fromEntries(paths);
  };
  const roboto = { normal: '-Regular', bold: '-Medium', italics: '-Italic', bolditalics: '-MediumItalic' };
  const dejavu = { normal: '', bold: '-Bold', italics: '-Oblique', bolditalics: '-BoldOblique' };
  const Roboto = family('pdfmake/fonts/Roboto/Roboto', roboto);
  try {
    return {
      Roboto,
      'DejaVu Sans': family('dejavu-fonts-ttf/ttf/DejaVuSans', dejavu),
      monospace: family('dejavu-fonts-ttf/ttf/DejaVuSansMono', dejavu),
    };
  } catch {
    return { Roboto };
  }
}
