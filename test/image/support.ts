import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The Debian release of this machine, such as `bookworm`. */
export async function debianSuite(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8');
  return /^VERSION_CODENAME=(.*)$/m.exec(text)?.[1] ?? 'stable';
}

/** This machine's source of Debian packages for mmdebstrap; empty for Debian's own mirror. */
export async function debianSources(): Promise<string[]> {
  return ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list']
    .filter((path) => existsSync(path))
    .slice(0, 1);
}

/** Its proxies and verification settings, as options of apt. */
export async function aptOptions(): Promise<string[]> {
  const { stdout } = await run('apt-config', ['dump', 'Acquire']);
  return stdout
    .split('\n')
    .filter((line) => /^Acquire::(https?::Proxy|https?::CAInfo|Check-)/i.test(line) && !line.includes('""'));
}
