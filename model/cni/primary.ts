import { ConflistError, type ConflistOptions, GATE_CONFLIST, gateConflist } from './conflist.ts';

/** A file of the runtime's configuration directory. */
export interface ConfFile {
  readonly name: string;
  /** Undefined if it could not be read. */
  readonly text: string | undefined;
}

/** What is to be done with the gate's own list. */
export type ConflistPlan =
  | { readonly kind: 'write'; readonly text: string; readonly primary: string }
  /** There is no primary: whoever wrote it says by that that the network is not ready. */
  | { readonly kind: 'remove' }
  /** It is as it should be, or nothing can be said now. */
  | { readonly kind: 'keep'; readonly problem: string | undefined };

const EXTENSIONS = ['.conf', '.conflist', '.json'];

/** The file that a runtime would take, were it not for the gate's: the first in the order of their names' bytes. */
export function choosePrimary(files: readonly ConfFile[]): ConfFile | undefined {
  return files
    .filter(({ name }) => name !== GATE_CONFLIST && EXTENSIONS.some((extension) => name.endsWith(extension)))
    .sort((a, b) => (a.name < b.name ? -1 : 1))[0];
}

/**
 * What to do for the files that are there. A primary that cannot be read or gated keeps the list as it is: files are
 * not everywhere replaced in one step, and a list that is taken away makes the node NotReady.
 */
export function planConflist(files: readonly ConfFile[], options: ConflistOptions): ConflistPlan {
  const primary = choosePrimary(files);
  const own = files.find(({ name }) => name === GATE_CONFLIST);
  if (primary === undefined) return own === undefined ? { kind: 'keep', problem: undefined } : { kind: 'remove' };
  if (primary.name < GATE_CONFLIST) {
    return { kind: 'keep', problem: `${primary.name} sorts before ${GATE_CONFLIST}: the runtime passes the gate by` };
  }
  if (primary.text === undefined) return { kind: 'keep', problem: `${primary.name} cannot be read` };
  try {
    const text = gateConflist(primary.name, primary.text, options);
    if (text === own?.text) return { kind: 'keep', problem: undefined };
    return { kind: 'write', text, primary: primary.name };
  } catch (error) {
    if (error instanceof ConflistError) return { kind: 'keep', problem: error.message };
    throw error;
  }
}
