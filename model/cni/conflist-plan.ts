import { ConflistError, GATE_FILES, type GateFile, gateConflist } from './conflist.ts';

export interface ConfFile {
  readonly name: string;
  /** Undefined if the file could not be read. */
  readonly text: string | undefined;
  /** Why it could not be read. */
  readonly fault?: string;
}

/** `remove` names existing files to delete. */
export type ConflistPlan =
  | {
      readonly kind: 'write';
      readonly name: GateFile;
      readonly text: string;
      readonly primary: string;
      remove: GateFile[];
    }
  /** No primary exists: the network provider has not written one, so the network is not ready. */
  | { readonly kind: 'remove'; readonly remove: GateFile[] }
  /** The files are correct, or the state is unknown at present. */
  | { readonly kind: 'keep'; readonly problem: string | undefined };

const EXTENSIONS = ['.conf', '.conflist', '.json'];
const GATE_FILE_NAMES: readonly string[] = Object.values(GATE_FILES);
/** The last of the gate's own names: the runtime would choose a primary that sorts before it instead of the gate. */
const LAST_GATE_FILE_NAME = GATE_FILES.plugin;

/** The file that a runtime would choose without the gate: the first name in byte order. */
export function choosePrimary(files: readonly ConfFile[]): ConfFile | undefined {
  return files
    .filter(({ name }) => !GATE_FILE_NAMES.includes(name) && EXTENSIONS.some((extension) => name.endsWith(extension)))
    .sort((a, b) => (a.name < b.name ? -1 : 1))[0];
}

/** If the primary cannot be read or gated, the gate's file stays: some tools do not replace files atomically. */
export function planConflist(files: readonly ConfFile[]): ConflistPlan {
  const primary = choosePrimary(files);
  const present = files.filter(({ name }) => GATE_FILE_NAMES.includes(name)) as (ConfFile & { name: GateFile })[];
  if (primary === undefined) {
    const remove = present.map(({ name }) => name);
    return remove.length === 0 ? { kind: 'keep', problem: undefined } : { kind: 'remove', remove };
  }
  if (primary.name < LAST_GATE_FILE_NAME) {
    return {
      kind: 'keep',
      problem: `${primary.name} sorts before ${LAST_GATE_FILE_NAME}: the runtime bypasses the gate`,
    };
  }
  if (primary.text === undefined)
    return { kind: 'keep', problem: `${primary.name} cannot be read: ${primary.fault ?? 'no content'}` };
  try {
    const { name, text } = gateConflist(primary.name, primary.text);
    const remove = present.map((file) => file.name).filter((file) => file !== name);
    const current = present.find((file) => file.name === name)?.text;
    if (text === current && remove.length === 0) return { kind: 'keep', problem: undefined };
    return { kind: 'write', name, text, primary: primary.name, remove };
  } catch (error) {
    if (error instanceof ConflistError) return { kind: 'keep', problem: error.message };
    throw error;
  }
}
