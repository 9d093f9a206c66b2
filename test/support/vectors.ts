import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file of test/vectors, parsed each time, so that a test may change it. */
export function vector<T = unknown>(name: string): T {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../vectors', name), 'utf8')) as T;
}

/** A VMI as virt-api admitted it, and its launcher as virt-controller created it, before any webhook. */
export interface RealLauncher {
  /** The properties of the VM: `c4t2` has 4 cores of 2 threads, `pool3-c3` a pool of 3 IO threads and 3 cores. */
  readonly case: string;
  /** The release that rendered it. */
  readonly kubevirt: string;
  readonly vmi: RenderedObject;
  readonly launcher: RenderedObject;
}
export interface RenderedObject {
  readonly metadata: {
    readonly name?: string;
    readonly namespace: string;
    readonly annotations: Readonly<Record<string, string>>;
    readonly [key: string]: unknown;
  };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly [key: string]: unknown;
}
const FOLDER = 'launchers';
export function realLaunchers(): RealLauncher[] {
  return readdirSync(join(import.meta.dirname, '../vectors', FOLDER))
    .sort()
    .map((file) => vector<RealLauncher>(join(FOLDER, file)));
}
