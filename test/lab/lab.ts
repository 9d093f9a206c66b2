import { readFile, stat } from 'node:fs/promises';
import { monotonicSeconds } from '../../runtime/time.ts';
import { startProgram } from '../support/processes.ts';
import { execute } from './machine/commands.ts';
import type { LayoutName } from './machine/layouts.ts';
import { findMachines, type Machines, startMachines } from './machine/machine.ts';
import { whatIsMissing } from './machine/missing.ts';
import { podNetwork } from './machine/node-files.ts';
import type { Layer } from './machine/oci-archive.ts';
import { type Places, placesOf } from './machine/places.ts';
import type { MakeDisks } from './machine/qemu.ts';

/** One emulated machine of the lab, with the cluster whose node it is. */
export interface LabMachine {
  /** The cluster's administrator. Available after `up`, like the rest. */
  kubeconfig(): string;
  /** Runs a shell command line in the guest as root; returns its output. */
  run(command: string, input?: string): Promise<string>;
  copy(source: string, destination: string): Promise<void>;
  /**
   * Makes a port of an address in the guest's network reachable from this machine at the same address, which this
   * machine also has until the returned function is called.
   */
  reach(address: string, port: number): Promise<() => Promise<void>>;
  readonly places: Places;
  /** The network of the pods on it. */
  readonly podNetwork: string;
  /** The layer of the guest's image with Node.js, as a base for others. */
  nodeLayer(): Layer;
}

/** What runs of the lab need. */
export interface Needs {
  readonly layout: LayoutName;
  /** Machines: 1 or 2. */
  readonly machines: number;
  readonly makeDisks?: MakeDisks;
}

/** The first machine, alone in its cluster unless two are needed (docs/maintainers/lab.md). */
export interface Lab extends LabMachine {
  /**
   * Boots what is needed, unless another run keeps it.
   * @returns whether it belongs to that other run
   * @throws Error if that one has another layout or number of machines
   */
  up(needs: Needs, signal: AbortSignal): Promise<boolean>;
  /** The running machines, this one first. */
  machines(): readonly LabMachine[];
  /** Publishes the machines that `up` started for other runs. */
  keep(): Promise<void>;
  /** Stops the machines that `up` started. */
  down(): Promise<void>;
  /** How to inspect them. */
  readonly hint: string;
}

/** The lab, or the line about its missing parts. */
export async function findLab(env: NodeJS.ProcessEnv): Promise<Lab | { readonly missing: string }> {
  const places = [placesOf(env, 0), placesOf(env, 1)] as const;
  const missing = await whatIsMissing(places[0]);
  if (missing !== undefined) return { missing };
  let running: Machines | undefined;
  const up = () => {
    if (running === undefined) throw new Error('the lab is not up');
    return running;
  };
  return {
    ...machineOf(up, places[0], 0),
    machines: () => up().guests.map((guest, index) => machineOf(up, guest.places, index)),
    async up({ layout, machines, makeDisks = async () => ({}) }, signal) {
      running = await findMachines(places);
      const kept = running && `${running.guests.length} with the layout ${running.layout}`;
      const needed = `${machines} with the layout ${layout}`;
      if (kept !== undefined && kept !== needed) {
        throw new Error(`the machines that another run keeps are ${kept}, not ${needed}`);
      }
      if (kept !== undefined) return true;
      const began = monotonicSeconds();
      const say = (what: string) =>
        console.error(`lab ${(monotonicSeconds() - began).toFixed(0).padStart(4)} s  ${what}`);
      running = await startMachines({ places: places.slice(0, machines), layout, makeDisks, say, signal });
      return false;
    },
    keep: () => up().keep(),
    async down() {
      await running?.stop();
      running = undefined;
    },
    get hint() {
      const shells = up().guests.map(({ shell }) => `ssh ${shell.arguments.join(' ')}`);
      return [`KUBECONFIG=${up().kubeconfig}`, ...shells].join('\n');
    },
  };
}

function machineOf(up: () => Machines, places: Places, index: number): LabMachine {
  const shell = () => up().guests[index]!.shell;
  return {
    places,
    podNetwork: podNetwork(index),
    kubeconfig: () => up().kubeconfig,
    nodeLayer: () => up().nodeLayer,
    run: (command, input) => shell().run(command, input),
    async copy(source, destination) {
      const path = `'${destination}'`;
      const mode = ((await stat(source)).mode & 0o777).toString(8);
      const line = `mkdir -p "$(dirname ${path})" && cat >${path} && chmod ${mode} ${path}`;
      await shell().run(line, await readFile(source));
    },
    async reach(address, port) {
      const own = ['address', 'replace', `${address}/32`, 'dev', 'lo'];
      await execute('ip', own);
      const way = `${address}:${port}:${address}:${port}`;
      const args = ['-N', '-o', 'ExitOnForwardFailure=yes', '-L', way, ...shell().arguments];
      const program = startProgram('ssh', '/usr/bin/ssh', args, `${places.run}/forward-${port}.log`);
      return async () => {
        await program.stop();
        await execute('ip', own.with(1, 'delete'));
      };
    },
  };
}
