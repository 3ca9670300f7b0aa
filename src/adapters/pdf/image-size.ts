/** Images as `data:` URIs: which ones can be drawn, and how large they are, read from their first bytes. */

import { fromBase64 } from '../../engine/base/base64.ts';
import { RefusedHtml } from './thread-messages.ts';

/** The pixels of all images of a document: a small file can have very many. */
export interface ImageBudget {
  pixels: number;
}

export interface CheckedImage {
  readonly src: string;
  readonly width: number;
  readonly height: number;
}

const MAX_PIXELS = 50_000_000;

/**
 * @returns the image, with its size in pixels; undefined for a reference, which is never followed
 * @throws RefusedHtml for a `data:` URI that can't be drawn
 */
export function checkImage(given: string, budget: ImageBudget): CheckedImage | undefined {
  const src = given.trim();
  if (!/^data:/i.test(src)) return undefined;
  const found = /^data:([a-z0-9.+/-]{0,60})((?:;[^;,]{0,100}){0,5}),/i.exec(src);
  const type = found?.[1]?.toLowerCase() ?? '';
  const base64 = /;base64$/i.test(found?.[2] ?? '');
  if (!found || !/^image\/(?:png|jpe?g)$/.test(type) || !base64) {
    const shown = type === '' ? 'no type' : `the type ${type}`;
    throw new RefusedHtml(
      `an image is a data URI with ${shown}; use PNG or JPEG as \`data:image/png;base64,...\`, or \`<svg>\` in the HTML`,
    );
  }
  const content = src.slice(found[0].length).replace(/\s+/g, '');
  const bytes = fromBase64(content);
  const size = bytes && (type === 'image/png' ? pngSize(bytes) : jpegSize(bytes));
  if (!size || size.width === 0 || size.height === 0)
    throw new RefusedHtml(`an image with the type ${type} is damaged, or has another type`);
  budget.pixels += size.width * size.height;
  if (budget.pixels > MAX_PIXELS)
    throw new RefusedHtml(`its images have more than ${MAX_PIXELS} pixels together; use smaller images`);
  return { src: `data:${type};base64,${content}`, ...size };
}

function pngSize(bytes: Uint8Array): { width: number; height: number } | undefined {
  const isPng = bytes.length >= 24 && bytes[0] === 0x89 && bytes[1] === 0x50 && bytes[2] === 0x4e && bytes[3] === 0x47;
  if (!isPng) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

// The first frame header of the file has the size.
function jpegSize(bytes: Uint8Array): { width: number; height: number } | undefined {
  if (bytes[0] !== 0xff || bytes[1] !== 0xd8) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 2;
  while (at + 9 < bytes.length) {
    if (bytes[at] !== 0xff) return undefined;
    const marker = bytes[at + 1] as number;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    at += 2 + (marker === 0xff ? -1 : view.getUint16(at + 2));
  }
  return undefined;
}
