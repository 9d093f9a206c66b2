import { readFile, stat } from 'node:fs/promises';
import { monotonicSeconds } from '../../runtime/time.ts';
import { startProgram } from '../support/processes.ts';
import { execute } from './machine/commands.ts';
import type { LayoutName } from './machine/layouts.ts';
import { findMachines, type Machines, startMachines } from './machine/machine.ts';
import { whatIsMissing } from './machine/missing.ts';
import { podNetwork } from './machine/node-files.ts';
import { type Places, placesOf } from './machine/places.ts';
import type { MakeDisks } from './machine/qemu.ts';

/** One emulated machine of the lab, with the cluster whose node it is. */
export type LabMachine = ReturnType<typeof machineOf>;

/** What runs of the lab need. */
export interface Needs {
  readonly layout: LayoutName;
  readonly machines: number;
  readonly makeDisks?: MakeDisks;
}

/** The first machine, alone in its cluster unless two are needed (docs/maintainers/lab.md). */
export type Lab = Exclude<Awaited<ReturnType<typeof findLab>>, { readonly missing: string }>;

export async function findLab(env: NodeJS.ProcessEnv) {
  const places = [placesOf(env, 0), placesOf(env, 1)] as const;
  const missing = await whatIsMissing(places[0]);
  if (missing !== undefined) return { missing } as const;
  let running: Machines | undefined;
  const up = () => {
    if (running === undefined) throw new Error('the lab is not up');
    return running;
  };
  return {
    ...machineOf(up, places[0], 0),
    machines: () => up().guests.map((guest, index) => machineOf(up, guest.places, index)),
    /**
     * Boots what is needed, unless another run keeps it.
     * @returns whether it belongs to that other run
     * @throws Error if that one has another layout or number of machines
     */
    async up({ layout, machines, makeDisks = async () => ({}) }: Needs, signal: AbortSignal) {
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
    /** How to inspect them. */
    get hint() {
      const shells = up().guests.map(({ shell }) => `ssh ${shell.arguments.join(' ')}`);
      return [`KUBECONFIG=${up().kubeconfig}`, ...shells].join('\n');
    },
  };
}

function machineOf(up: () => Machines, places: Places, index: number) {
  const shell = () => up().guests[index]!.shell;
  return {
    places,
    podNetwork: podNetwork(index),
    kubeconfig: () => up().kubeconfig,
    /** The layer of the guest's image with Node.js, as a base for others. */
    nodeLayer: () => up().nodeLayer,
    /** Runs a shell command line in the guest as root; returns its output. */
    run: (command: string, input?: string) => shell().run(command, input),
    async copy(source: string, destination: string) {
      const path = `'${destination}'`;
      const mode = ((await stat(source)).mode & 0o777).toString(8);
      const line = `mkdir -p "$(dirname ${path})" && cat >${path} && chmod ${mode} ${path}`;
      await shell().run(line, await readFile(source));
    },
    /** Makes a port of a guest's address reachable here at that address, until the returned function is called. */
    async reach(address: string, port: number) {
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
