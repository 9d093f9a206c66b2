import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { root } from './bundles.ts';

/** The bundles of the previous release. */
export interface PreviousRelease {
  readonly dist: string;
  /** The tag, or the name of the folder. */
  readonly name: string;
}

let found: PreviousRelease | undefined;

/** From the folder in PLUMBLINE_PREVIOUS, otherwise built from the newest release tag; undefined without either. */
export function previousRelease(): PreviousRelease | undefined {
  const folder = process.env['PLUMBLINE_PREVIOUS'];
  if (folder !== undefined && folder !== '') {
    const dist = resolve(root, folder);
    for (const name of ['webhook', 'scheduler-plugin', 'node-agent']) {
      if (!existsSync(join(dist, `${name}.cjs`))) throw new Error(`PLUMBLINE_PREVIOUS: ${dist} has no ${name}.cjs`);
    }
    return { dist, name: folder };
  }
  const tag = newestRelease(root);
  if (tag === undefined) return undefined;
  found ??= build(tag);
  return found;
}

/** The newest release before the current commit, by the tags of a repository. */
export function newestRelease(repository: string): string | undefined {
  const git = (...args: string[]) => spawnSync('git', args, { cwd: repository, encoding: 'utf8' }).stdout ?? '';
  const own = new Set(git('tag', '--points-at', 'HEAD').split('\n'));
  return git('tag', '--list', 'v[0-9]*', '--merged', 'HEAD', '--sort=-version:refname')
    .split('\n')
    .find((tag) => /^v\d+\.\d+\.\d+$/.test(tag) && !own.has(tag));
}

function build(tag: string): PreviousRelease {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-previous-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const archive = execFileSync('git', ['archive', tag], { cwd: root, maxBuffer: 256 * 1024 * 1024 });
  execFileSync('tar', ['-x', '-C', directory], { input: archive });
  const lock = (folder: string) => readFileSync(join(folder, 'package-lock.json'), 'utf8');
  if (lock(directory) === lock(root)) symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  else execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: directory, stdio: 'pipe' });
  const env = { ...process.env, PLUMBLINE_DIST: join(directory, 'dist') };
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: directory, env, stdio: 'pipe' });
  return { dist: env.PLUMBLINE_DIST, name: tag };
}
