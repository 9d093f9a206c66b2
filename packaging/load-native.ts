import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { getAsset } from 'node:sea';

/**
 * Replaces koffi's own loader, which searches node_modules for its native module, and loads the one in the executable
 * instead. The dynamic linker needs a file, so the module is briefly written to a folder that only this user can enter;
 * once loaded, the file can be removed.
 * @throws Error that names the folder, if files cannot be written or executed there
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
