import { UsageError } from './arguments.ts';

/** The supported architectures by Node.js' names, by e_machine. Source: elf(5). */
const ARCHITECTURES: Readonly<Record<number, string>> = { 62: 'x64', 183: 'arm64' };
const E_MACHINE = 18;
const ELF_MAGIC = '\x7fELF';

/**
 * The architecture of a program or native module.
 * @throws UsageError for a file that is not ELF, or of another architecture
 */
export function architectureOf(file: string, bytes: Buffer): string {
  const isElf = bytes.length > E_MACHINE + 1 && bytes.toString('latin1', 0, 4) === ELF_MAGIC;
  if (!isElf) throw new UsageError(`${file} is not an ELF file; executables are built for Linux only`);
  const machine = bytes.readUInt16LE(E_MACHINE);
  const found = ARCHITECTURES[machine];
  if (found === undefined) throw new UsageError(`${file} is for machine ${machine} of ELF: expected x86-64 or arm64`);
  return found;
}
