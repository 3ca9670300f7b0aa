/** The dashboard's page: asks who the caller is, and shows the screens or the form for a token. */

import { render } from 'preact';
import { App } from './app.tsx';

const root = document.getElementById('app');
if (root) render(<App />, root);
