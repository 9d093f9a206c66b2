import { readFile, stat } from 'node:fs/promises';
import { monotonicSeconds } from '../../runtime/time.ts';
import { startProgram } from '../real/processes.ts';
import { execute } from './machine/commands.ts';
import type { LayoutName } from './machine/layouts.ts';
import { findMachine, type Machine, startMachine } from './machine/machine.ts';
import { whatIsMissing } from './machine/missing.ts';
import type { Layer } from './machine/oci-archive.ts';
import { type Places, placesOf } from './machine/places.ts';
import type { MakeDisks } from './machine/qemu.ts';

/** The emulated machine that is the only node of a cluster (docs/maintainers/lab.md). */
export interface Lab {
  /** The cluster's administrator. Available after `up`, like the rest. */
  kubeconfig(): string;
  /**
   * Boots it, unless another run keeps one.
   * @returns whether it belongs to that other run
   * @throws Error if that one has another layout
   */
  up(signal: AbortSignal, layout: LayoutName, disks?: MakeDisks): Promise<boolean>;
  /** Publishes the machine that `up` started for other runs. */
  keep(): Promise<void>;
  /** Stops the machine that `up` started. */
  down(): Promise<void>;
  /** Runs a shell command line in the guest as root; returns its output. */
  run(command: string, input?: string): Promise<string>;
  copy(source: string, destination: string): Promise<void>;
  /**
   * Makes a port of an address in the guest's network reachable from this machine at the same address, which this
   * machine also has until the returned function is called.
   */
  reach(address: string, port: number): Promise<() => Promise<void>>;
  readonly places: Places;
  /** The layer of the guest's image with Node.js, as a base for others. */
  nodeLayer(): Layer;
  /** How to inspect it. */
  readonly hint: string;
}

/** The lab, or the line about its missing parts. */
export async function findLab(env: NodeJS.ProcessEnv): Promise<Lab | { readonly missing: string }> {
  const places = placesOf(env);
  const missing = await whatIsMissing(places);
  if (missing !== undefined) return { missing };
  let machine: Machine | undefined;
  const up = () => {
    if (machine === undefined) throw new Error('the lab is not up');
    return machine;
  };
  return {
    kubeconfig: () => up().kubeconfig,
    async up(signal, layout, makeDisks = async () => ({})) {
      machine = await findMachine(places);
      if (machine !== undefined && machine.layout !== layout) {
        throw new Error(`the machine that another run keeps has the layout ${machine.layout}, not ${layout}`);
      }
      if (machine !== undefined) return true;
      const began = monotonicSeconds();
      const say = (what: string) =>
        console.error(`lab ${(monotonicSeconds() - began).toFixed(0).padStart(4)} s  ${what}`);
      machine = await startMachine(places, layout, makeDisks, say, signal);
      return false;
    },
    keep: () => up().keep(),
    async down() {
      await machine?.stop();
      machine = undefined;
    },
    run: (command, input) => up().shell.run(command, input),
    async copy(source, destination) {
      const path = `'${destination}'`;
      const mode = ((await stat(source)).mode & 0o777).toString(8);
      const line = `mkdir -p "$(dirname ${path})" && cat >${path} && chmod ${mode} ${path}`;
      await up().shell.run(line, await readFile(source));
    },
    async reach(address, port) {
      const own = ['address', 'replace', `${address}/32`, 'dev', 'lo'];
      await execute('ip', own);
      const way = `${address}:${port}:${address}:${port}`;
      const args = ['-N', '-o', 'ExitOnForwardFailure=yes', '-L', way, ...up().shell.arguments];
      const program = startProgram('ssh', '/usr/bin/ssh', args, `${places.run}/forward-${port}.log`);
      return async () => {
        await program.stop();
        await execute('ip', own.with(1, 'delete'));
      };
    },
    places,
    nodeLayer: () => up().nodeLayer,
    get hint() {
      return `KUBECONFIG=${up().kubeconfig}\nssh ${up().shell.arguments.join(' ')}`;
    },
  };
}
