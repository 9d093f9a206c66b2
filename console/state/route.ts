import { signal } from '@preact/signals';

/** What is looked at: kept in the address, so that a picture can be linked to and the browser's Back works. */
export type Route =
  | { readonly list: 'nodes'; readonly node?: string }
  | { readonly list: 'waiting'; readonly pod?: string };

export const route = signal<Route>(parse(location.hash));

export function hashOf(to: Route): string {
  const chosen = to.list === 'nodes' ? to.node : to.pod;
  return `#/${to.list}${chosen === undefined ? '' : `/${chosen.split('/').map(encodeURIComponent).join('/')}`}`;
}

export function go(to: Route): void {
  location.hash = hashOf(to);
}

function parse(hash: string): Route {
  const [list, ...rest] = hash.replace(/^#\/?/, '').split('/').map(decoded);
  const chosen = rest.join('/');
  if (list === 'waiting') return chosen === '' ? { list } : { list, pod: chosen };
  return chosen === '' ? { list: 'nodes' } : { list: 'nodes', node: chosen };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function followAddress(): void {
  addEventListener('hashchange', () => {
    route.value = parse(location.hash);
  });
}
