/** The types of packages that have none: what the embedded renderer uses of them. */

declare module 'html-to-pdfmake' {
  import type { Content } from 'pdfmake/interfaces.js';

  interface Options {
    readonly window: object;
    readonly removeTagClasses: boolean;
    readonly defaultStyles: object;
    readonly customTag: (tag: { element: Element; parents: readonly Element[]; ret: unknown }) => unknown;
  }
  const convert: (html: string, options: Options) => Content;
  export = convert;
}

declare module 'juice/client.js' {
  const juice: (html: string, options?: object) => string;
  export = juice;
}
