/** The screens: the first part of an address, the title in the navigation, and the scope that a caller needs for each. */

import type { ComponentChildren } from 'preact';
import type { TokenScope } from '../../engine/access/token.ts';
import type { Address } from '../address.ts';
import { ExecutionScreen } from '../execution/execution-screen.tsx';
import { ComponentScreen, Components } from './components.tsx';
import { Deliveries } from './deliveries.tsx';
import { EnsembleScreen, Ensembles } from './ensembles.tsx';
import { Executions } from './executions.tsx';
import { Home } from './home.tsx';
import { Schedules } from './schedules.tsx';
import { Settings } from './settings.tsx';

export interface Screen {
  readonly name: string;
  readonly title: string;
  /** Undefined: any caller. */
  readonly scope: TokenScope | undefined;
  show(address: Address): ComponentChildren;
}

export const SCREENS: readonly Screen[] = [
  { name: '', title: 'Home', scope: undefined, show: () => <Home /> },
  {
    ...{ name: 'executions', title: 'Executions', scope: 'read:executions' },
    show: ({ path: [, id], query }) =>
      id === undefined ? <Executions query={query} /> : <ExecutionScreen key={id} id={id} query={query} />,
  },
  {
    ...{ name: 'ensembles', title: 'Ensembles', scope: 'read:ensembles' },
    show: ({ path: [, name], query }) =>
      name === undefined ? <Ensembles query={query} /> : <EnsembleScreen key={name} name={name} query={query} />,
  },
  { name: 'schedules', title: 'Schedules', scope: 'read:ensembles', show: () => <Schedules /> },
  {
    ...{ name: 'components', title: 'Components', scope: 'read:components' },
    show: ({ path: [, name], query }) =>
      name === undefined ? <Components query={query} /> : <ComponentScreen key={name} name={name} query={query} />,
  },
  {
    ...{ name: 'deliveries', title: 'Deliveries', scope: 'read:executions' },
    show: ({ query }) => <Deliveries query={query} />,
  },
  { name: 'settings', title: 'Settings', scope: undefined, show: ({ query }) => <Settings query={query} /> },
];
