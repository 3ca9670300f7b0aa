/** Images as `data:` URIs: which ones can be drawn, and how large they are, read from their first bytes. */

import { inflateSync } from 'node:zlib';
import { fromBase64 } from '../../engine/base/bytes/base64.ts';
import { joinBytes } from '../../engine/base/bytes/join-bytes.ts';
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
  // The packages decode it later, where an error ends the thread.
  if (type === 'image/png' && !isWholePng(bytes))
    throw new RefusedHtml('an image with the type image/png is damaged: its pixels are not complete');
  return { src: `data:${type};base64,${content}`, ...size };
}

function pngSize(bytes: Uint8Array): { width: number; height: number } | undefined {
  const isPng = bytes.length >= 24 && bytes[0] === 0x89 && bytes[1] === 0x50 && bytes[2] === 0x4e && bytes[3] === 0x47;
  if (!isPng) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

/** How many values each pixel has, by the color type of the header. */
const CHANNELS: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/** Whether all pixels that the header claims are there. */
function isWholePng(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [width, height] = [view.getUint32(16), view.getUint32(20)];
  const [depth = 0, color = 0, , , interlace = 0] = bytes.subarray(24, 29);
  const channels = CHANNELS[color];
  if (channels === undefined || ![1, 2, 4, 8, 16].includes(depth)) return false;
  const parts: Uint8Array[] = [];
  let hasPalette = false;
  for (let at = 8; at + 12 <= bytes.length; ) {
    const length = view.getUint32(at);
    const kind = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    if (at + 12 + length > bytes.length) return false;
    if (kind === 'IDAT') parts.push(bytes.subarray(at + 8, at + 8 + length));
    if (kind === 'PLTE') hasPalette = true;
    at += 12 + length;
  }
  if (color === 3 && !hasPalette) return false;
  // An interlaced image has up to seven partial ones, and a byte more for each of their rows.
  const bytesOfPixels = height * (1 + Math.ceil((width * channels * depth) / 8));
  const most = bytesOfPixels + (interlace === 1 ? height * 8 + width * 8 : 0);
  try {
    return (
      inflateSync(joinBytes(parts), { maxOutputLength: most + 1 }).byteLength >= (interlace === 1 ? 1 : bytesOfPixels)
    );
  } catch {
    return false;
  }
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
