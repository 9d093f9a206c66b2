import { effect, signal } from '@preact/signals';
import { type ListName, parametersOf, takeParameters } from './queries.ts';

/** What is looked at: kept in the address, so that a picture can be linked to and the browser's Back works. */
export interface Route {
  readonly list: ListName;
  /** Name of a node; namespace/name of a VM, or of a pod that waits. */
  readonly chosen?: string;
}

const LISTS: readonly ListName[] = ['nodes', 'vms', 'waiting'];

export const route = signal<Route>(parse(location.hash));

/** With what the list is searched and sorted by, so that it is the same behind what was chosen. */
export function hashOf({ list, chosen }: Route): string {
  const path = chosen === undefined ? '' : `/${chosen.split('/').map(encodeURIComponent).join('/')}`;
  return `#/${list}${path}${parametersOf(list)}`;
}

export function go(to: Route): void {
  location.hash = hashOf(to);
}

function parse(hash: string): Route {
  const [path = '', parameters = ''] = hash.split(/\?(.*)/s);
  const [name, ...rest] = path.replace(/^#\/?/, '').split('/').map(decoded);
  const list = LISTS.find((one) => one === name) ?? 'nodes';
  takeParameters(list, parameters === '' ? '' : `?${parameters}`);
  const chosen = rest.join('/');
  return chosen === '' ? { list } : { list, chosen };
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
  // A search is part of the address, and no step of the browser's Back.
  effect(() => {
    const hash = hashOf(route.value);
    if (location.hash !== '' || parametersOf(route.value.list) !== '') {
      if (location.hash !== hash) history.replaceState(null, '', hash);
    }
  });
}
