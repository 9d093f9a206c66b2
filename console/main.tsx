import { render } from 'preact';
import { App } from './parts/app.tsx';
import { followAddress } from './state/route.ts';
import { follow } from './state/state.ts';

const root = document.getElementById('app');
if (root === null) throw new Error('the page has no element #app');
followAddress();
root.replaceChildren();
render(<App />, root);
follow();
