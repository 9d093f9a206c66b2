import { ConflistError, type ConflistOptions, GATE_FILES, type GateFile, gateConflist } from './conflist.ts';

/** A file of the runtime's configuration directory. */
export interface ConfFile {
  readonly name: string;
  /** Undefined if it could not be read. */
  readonly text: string | undefined;
}

/** The changes to the gate's own files; `remove` names existing files to delete. */
export type ConflistPlan =
  | {
      readonly kind: 'write';
      readonly name: GateFile;
      readonly text: string;
      readonly primary: string;
      remove: GateFile[];
    }
  /** There is no primary: the network provider has not written one, so the network is not ready. */
  | { readonly kind: 'remove'; readonly remove: GateFile[] }
  /** All is as it should be, or nothing can be said now. */
  | { readonly kind: 'keep'; readonly problem: string | undefined };

const EXTENSIONS = ['.conf', '.conflist', '.json'];
const OWN: readonly string[] = Object.values(GATE_FILES);
/** The last of the gate's own names: a primary before it would be taken in the gate's place. */
const LAST_OWN = GATE_FILES.plugin;

/** The file that a runtime would take, were it not for the gate's: the first in the order of their names' bytes. */
export function choosePrimary(files: readonly ConfFile[]): ConfFile | undefined {
  return files
    .filter(({ name }) => !OWN.includes(name) && EXTENSIONS.some((extension) => name.endsWith(extension)))
    .sort((a, b) => (a.name < b.name ? -1 : 1))[0];
}

/**
 * What to do for the files that are there. A primary that cannot be read or gated keeps the gate's as it is: files are
 * not everywhere replaced in one step, and a configuration that is taken away makes the node NotReady.
 */
export function planConflist(files: readonly ConfFile[], options: ConflistOptions): ConflistPlan {
  const primary = choosePrimary(files);
  const present = files.filter(({ name }) => OWN.includes(name)) as (ConfFile & { name: GateFile })[];
  if (primary === undefined) {
    const remove = present.map(({ name }) => name);
    return remove.length === 0 ? { kind: 'keep', problem: undefined } : { kind: 'remove', remove };
  }
  if (primary.name < LAST_OWN) {
    return { kind: 'keep', problem: `${primary.name} sorts before ${LAST_OWN}: the runtime bypasses the gate` };
  }
  if (primary.text === undefined) return { kind: 'keep', problem: `${primary.name} cannot be read` };
  try {
    const { name, text } = gateConflist(primary.name, primary.text, options);
    const remove = present.map((one) => one.name).filter((one) => one !== name);
    const current = present.find((one) => one.name === name)?.text;
    if (text === current && remove.length === 0) return { kind: 'keep', problem: undefined };
    return { kind: 'write', name, text, primary: primary.name, remove };
  } catch (error) {
    if (error instanceof ConflistError) return { kind: 'keep', problem: error.message };
    throw error;
  }
}
