import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { getAsset } from 'node:sea';

/**
 * Replaces koffi's own loader, which looks for its native module in node_modules: loads the one that the executable
 * carries. The dynamic linker wants a file, so it is one for a moment, in a folder that this user alone can enter; once
 * loaded it needs no name.
 * @throws Error that names the folder, where nothing may be written or run in it
 */
export function loadNative(): unknown {
  const module: { exports: unknown } = { exports: {} };
  let directory: string | undefined;
  try {
    directory = mkdtempSync(join(tmpdir(), 'plumbline-native-'));
    const file = join(directory, 'koffi.node');
    writeFileSync(file, new Uint8Array(getAsset('koffi.node')), { mode: 0o500 });
    process.dlopen(module, file, constants.dlopen.RTLD_LAZY);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `system calls need a folder for a native module, and ${tmpdir()} does not do: ${why}; name another in TMPDIR, ` +
        'one that is writable and not mounted noexec',
    );
  } finally {
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  }
  return module.exports;
}
