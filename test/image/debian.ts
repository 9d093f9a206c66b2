import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The release of Debian that this machine has, as `bookworm`. */
export async function debianSuite(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8');
  return /^VERSION_CODENAME=(.*)$/m.exec(text)?.[1] ?? 'stable';
}

/** Where this machine gets Debian's packages from, for mmdebstrap; nothing where it is set up otherwise: Debian's own mirror. */
export async function debianSources(): Promise<string[]> {
  return ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list']
    .filter((path) => existsSync(path))
    .slice(0, 1);
}

/** Its proxies and how it checks what it gets, as options of apt. */
export async function aptOptions(): Promise<string[]> {
  const { stdout } = await run('apt-config', ['dump', 'Acquire']);
  return stdout
    .split('\n')
    .filter((line) => /^Acquire::(https?::Proxy|https?::CAInfo|Check-)/i.test(line) && !line.includes('""'));
}
