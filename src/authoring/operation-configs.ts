/** The configs of the built-in operations as definitions in TypeScript write them: any value may be an expression. */

import type { Json, JsonObject } from '../engine/base/json/json.ts';
import type { Expression } from '../engine/base/time/duration.ts';
import type { ApiConfig } from '../operations/api/config.ts';
import type { EmailConfig } from '../operations/email/config.ts';
import type { PdfConfig } from '../operations/pdf/pdf-operation.ts';
import type { SmsConfig } from '../operations/sms/config.ts';
import type { StorageConfigText } from '../operations/storage/storage-config.ts';
import type { ThinkConfig } from '../operations/think/config.ts';
import type { ToolsConfig } from '../operations/tools/tools-operation.ts';

/** A value as a definition writes it: itself, or a text with an expression, at any depth. An object may be a reference to a component. */
export type Written<T> = [Json] extends [T] ? T : WrittenPart<T>;
type WrittenPart<T> = T extends string | number | boolean | null | undefined
  ? T | Expression
  : T extends readonly (infer Item)[]
    ? readonly Written<Item>[] | Expression
    : T extends object
      ? { readonly [Key in keyof T]: Written<T[Key]> } | Expression | `${string}://${string}`
      : T;

/** The settings of mail senders in the config of `email`. A sender of your own adds its settings by declaration merging. */
export interface EmailSettings {
  readonly apiKey?: string | null | undefined;
  readonly host?: string | null | undefined;
  readonly port?: number | null | undefined;
  readonly secure?: boolean | null | undefined;
  readonly auth?: { readonly user: string; readonly pass: string } | null | undefined;
}

/** The config of `code`: the script, and any keys that the script reads. */
export interface CodeConfig<Script extends string = string> {
  /** The name of an entry of the option `scripts`. */
  readonly script: Script;
  readonly [key: string]: Json | undefined;
}

/** The config of each built-in operation, besides `code`. */
export interface OperationConfigs {
  readonly api: ApiConfig;
  readonly email: EmailConfig & EmailSettings;
  readonly pdf: Omit<PdfConfig, 'html'> & {
    readonly html?: string | undefined;
    /** A reference such as `template://invoice@production`, in place of `html`. */
    readonly template?: string | undefined;
  };
  readonly sms: SmsConfig;
  readonly storage: StorageConfigText;
  readonly think: Omit<ThinkConfig, 'model'> & {
    /** It may be left out if the stored prompt names it. */
    readonly model?: string | undefined;
  };
  readonly tools: ToolsConfig;
}

/** A stored config in place of a written one. */
export type ConfigReference = `config://${string}`;

/** A config as a definition writes it. With the key `<<`, a stored config has the other keys. */
export type WrittenConfig<C> =
  | { readonly [Key in keyof C]: Written<C[Key]> }
  | ({ readonly '<<': ConfigReference } & { readonly [Key in keyof C]?: Written<C[Key]> | undefined })
  | ConfigReference;

export type AnyConfig = JsonObject | ConfigReference;
