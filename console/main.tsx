import { render } from 'preact';
import { App } from './parts/app.tsx';
import { followAddress } from './state/route.ts';
import { follow } from './state/state.ts';
import { applyTheme, theme } from './state/theme.ts';

const root = document.getElementById('app');
if (root === null) throw new Error('the page has no element #app');
applyTheme(theme.value);
followAddress();
root.replaceChildren();
render(<App />, root);
follow();
