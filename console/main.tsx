import { render } from 'preact';
import { App } from './parts/app.tsx';
import { followAddress } from './route.ts';
import { follow } from './state.ts';
import { applyTheme, theme } from './theme.ts';

const root = document.getElementById('app');
if (root === null) throw new Error('the page has no element #app');
applyTheme(theme.value);
followAddress();
root.replaceChildren();
render(<App />, root);
follow();
