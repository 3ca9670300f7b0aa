/** The frame around every screen: navigation, keyboard, and what the caller may see. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { type Address, changeQuery, goTo, linkTo, useAddress } from './address.ts';
import { type AppState, useApp } from './app-state.ts';
import { KeyboardHelp, useKeyboard } from './keyboard.tsx';
import { SCREENS } from './screens/screens.tsx';

export function Shell() {
  const { caller, can, left, signOut } = useApp();
  const address = useAddress();
  const [isHelp, setHelp] = useState(false);
  const main = useRef<HTMLElement>(null);
  const [name = '', item] = address.path;
  const screens = SCREENS.filter(({ scope }) => scope === undefined || can(scope));
  const screen = SCREENS.find((one) => one.name === name);
  // Esc leads back to the list as it was.
  const list = useRef(address);
  if (address.path.length === 1) list.current = address;
  useKeyboard({ onHelp: () => setHelp(true), onBack: () => goUp(address, list.current, left) });
  // A reader of the screen hears which one it is.
  useEffect(() => {
    main.current?.focus({ preventScroll: true });
  }, [screen]);
  useEffect(() => {
    document.title = `${item ?? screen?.title ?? 'Not found'} - Ensembles`;
  }, [screen, item]);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class="bar">
        <nav aria-label="Screens">
          {screens.map((one) => (
            <a key={one.name} href={linkTo([one.name])} aria-current={one === screen ? 'page' : undefined}>
              {one.title}
            </a>
          ))}
        </nav>
        <span class="caller" title={caller.scopes.join(', ')}>
          {caller.name} {caller.readOnly && '(read-only)'}
        </span>
        <button type="button" class="quiet" aria-label="Keys" onClick={() => setHelp(true)}>
          ?
        </button>
        {signOut && (
          <button type="button" class="quiet" onClick={signOut}>
            Sign out
          </button>
        )}
      </header>
      <main ref={main} id="main" tabIndex={-1}>
        {screen && (screen.scope === undefined || can(screen.scope)) ? (
          screen.show(address)
        ) : (
          <p class="empty">
            {screen ? `This screen needs the scope ${screen.scope}.` : 'There is no such screen.'}{' '}
            <a href={linkTo([])}>Go to the first screen</a>
          </p>
        )}
      </main>
      {isHelp && <KeyboardHelp onClose={() => setHelp(false)} />}
    </>
  );
}

/** From a step to its execution, and from an item to its list. */
function goUp({ path, query }: Address, list: Address, left: AppState['left']): void {
  if (query.step !== undefined) changeQuery({ step: undefined });
  else if (path.length > 1) {
    left.current = linkTo(path);
    goTo(path.slice(0, 1), path[0] === list.path[0] ? list.query : {});
  }
}
