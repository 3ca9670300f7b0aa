/** What every part of the page needs: the client, and who the caller is. */

import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { TokenScope } from '../engine/access/token.ts';
import type { Client } from './api/client.ts';

export interface Caller {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  /** Nobody can change anything on this page. */
  readonly readOnly?: boolean;
}

export interface AppState {
  readonly client: Client;
  readonly caller: Caller;
  /** Whether the caller has a scope. */
  can(scope: TokenScope): boolean;
  /** Shows a short message. */
  say(message: string): void;
  /** The link of the item that a person left for its list. */
  readonly left: { current: string | undefined };
  /** Undefined if the host knows the caller without a token. */
  readonly signOut: (() => void) | undefined;
}

export const AppContext = createContext<AppState | undefined>(undefined);

export function useApp(): AppState {
  const state = useContext(AppContext);
  if (!state) throw new Error('a screen is outside of the app');
  return state;
}
