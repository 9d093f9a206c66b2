import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { hasCarrier } from '../../hardware/nic-cells.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import { Durations, ProblemLog } from '../../runtime/problem-log.ts';
import { Guard, Listeners, Throttle } from '../lifecycle/duty.ts';
import { followOvsdb } from '../open-vswitch/ovsdb/follow.ts';
import type { Tables } from '../open-vswitch/ovsdb/replica.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { combineNetworks, type NetworksView, UNKNOWN_NETWORKS } from './combine.ts';
import { type DiscoveredNetworks, locateNetworks } from './locate.ts';
import { createMapMemory, createMapSource, type LastMapFile, type MapInUse } from './map-source.ts';
import { type SwitchConfig, switchConfig } from './switch-config.ts';

/** The socket of Open vSwitch's database in its run directory. */
export const OVSDB_SOCKET = 'db.sock';

/** Seconds in which changes are collected into one read: setting up a bridge takes several. */
const DEBOUNCE_SECONDS = 0.05;
/** The pause after a read, as a multiple of its duration: a busy switch must not keep the agent busy. */
const REST_FACTOR = 10;
/** Seconds between searches for changes without notifications: drivers, addresses, members of bonds elsewhere. */
const CHECK_SECONDS = 30;

export type Networks = ReturnType<typeof createNetworks>;

export interface NetworksDeps {
  readonly sysfsRoot: string;
  readonly host: () => Promise<Host>;
  /** Undefined where the switch runs elsewhere (on a DPU). */
  readonly ovsRundir: string | undefined;
  readonly networkMap: string | undefined;
  readonly lastMap: LastMapFile;
  /** The node's labels. @throws KubeError */
  readonly labels: (signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;
  readonly log: AgentLogger;
}

/** Tracks where the node's networks are: the switch's configuration, sysfs, and the operator's map over both. */
export function createNetworks(deps: NetworksDeps) {
  const { sysfsRoot, ovsRundir, log } = deps;
  const listeners = new Listeners();
  let view = UNKNOWN_NETWORKS;
  let viewText = '';
  let isComplete = false;
  let tables: Tables | undefined;
  let config: SwitchConfig | undefined;
  let discovered: DiscoveredNetworks | undefined;
  let switchProblem: string | undefined;
  let hasNoSwitch = false;
  const problems = new ProblemLog(log);
  const logNetworks = createNetworksLog(log);
  const mapSource = createMapSource({ file: deps.networkMap, readLabels: deps.labels });
  const useMap = createMapMemory(deps.lastMap, log);

  /** A node whose map has every network needs no switch. Until its labels are read, it is unknown which map it has. */
  const logSwitch = ({ override, fault }: MapInUse) => {
    if (switchProblem === undefined) {
      problems.recovered();
      hasNoSwitch = false;
    } else if (override === undefined || discovered !== undefined) {
      if (fault?.reason !== 'NodeUnknown') problems.failed(switchProblem, 'querying Open vSwitch failed; retrying');
    } else if (!hasNoSwitch) {
      hasNoSwitch = true;
      log.info({ reason: switchProblem }, 'no Open vSwitch; using the network map alone');
    }
  };

  const reconcile = (host: Host) => {
    if (tables !== undefined) config = switchConfig(tables);
    tables = undefined;
    if (ovsRundir !== undefined && config === undefined && switchProblem === undefined) return;
    const cells = CpuSet.of(host.cells.map(({ id }) => id));
    if (config !== undefined && switchProblem === undefined) {
      // Only a tunnel needs the addresses, and listing them is expensive.
      let byAddress: ReadonlyMap<string, string> | undefined;
      const interfaceOf = (address: string) => {
        byAddress ??= hostAddresses();
        return byAddress.get(address);
      };
      discovered = locateNetworks(config, { sysfsRoot, cells, interfaceOf });
    }
    isComplete = true;
    const map = useMap({ map: mapSource.map, labels: mapSource.labels, cells });
    logSwitch(map);
    const next = combineNetworks({
      host,
      map,
      discovered,
      pmdCpus: config?.pmdCpus ?? CpuSet.EMPTY,
      switchFaults: config?.problems ?? [],
      switchProblem,
    });
    const text = JSON.stringify(next, (_key, value) =>
      value instanceof Map || value instanceof Set ? [...value] : value,
    );
    if (text === viewText) return;
    viewText = text;
    view = next;
    logNetworks(next);
    listeners.notify();
  };

  return {
    view: () => view,
    /** Whether every source has been read once. Until then, missing networks may still appear. */
    get isComplete() {
      return isComplete;
    },
    subscribe: listeners.subscribe,
    /** The duty. A restart of the duty keeps the networks that it found. */
    async run(signal: AbortSignal) {
      const host = await deps.host();
      const guard = new Guard();
      const carriers = new CarrierWatch(sysfsRoot);
      const work = guard.wrap(() => {
        reconcile(host);
        carriers.follow(discovered);
      });
      const reconciles = new Throttle(work, DEBOUNCE_SECONDS, REST_FACTOR);
      carriers.subscribe(reconciles.now);
      mapSource.follow({ onMap: guard.wrap(reconciles.soon), onLabels: reconciles.now }, signal);
      if (ovsRundir !== undefined) {
        const onTables = guard.wrap((now: Tables) => {
          tables = now;
          switchProblem = undefined;
          reconciles.soon();
        });
        const onProblem = guard.wrap((error: Error) => {
          switchProblem = error.message;
          reconciles.soon();
        });
        void followOvsdb({ socketPath: join(ovsRundir, OVSDB_SOCKET), onTables, onProblem }, signal);
      }
      const timer = setInterval(reconciles.now, CHECK_SECONDS * 1000);
      reconciles.now();
      try {
        await guard.until(signal);
      } finally {
        clearInterval(timer);
        carriers.end();
        reconciles.cancel();
      }
    },
  };
}

/** Creates a function that logs a view that differs from the last one. */
function createNetworksLog(log: AgentLogger) {
  const durations = new Durations();
  return ({ networks, down, pmdCpus, problems, mapFault = '', drift, unpolled }: NetworksView): void => {
    const physnets = Object.fromEntries([...networks.physnets].map(([name, cells]) => [name, cells.toString()]));
    const downNetworks = [...down].map((name) => name ?? 'tunnel');
    const fields = { physnets, tunnel: networks.tunnel, down: downNetworks, pmdCpuMask: pmdCpus };
    const reasons = [mapFault, ...problems.map(({ message }) => message), ...drift, ...unpolled];
    const texts = [...new Set(reasons)].filter((text) => text !== '');
    // The labels arrive a moment after the agent's start.
    if (problems.some(({ reason }) => reason === 'NodeUnknown')) {
      log.info(fields, 'waiting for the labels of the Node');
      return;
    }
    if (texts.length === 0) {
      log.info({ ...fields, ...durations.end('') }, 'network map updated');
      return;
    }
    durations.begin('');
    log.warn(
      { ...fields, reasons: texts },
      mapFault === '' ? 'network map updated with problems' : 'network map rejected',
    );
  };
}

function hostAddresses(): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    // A label such as eth0:1 belongs to the interface before its colon.
    for (const { address } of addresses ?? []) names.set(address, name.split(':')[0] ?? name);
  }
  return names;
}

/** Seconds between reads of the carriers that the switch does not report. */
const CARRIER_POLL_SECONDS = 2;

/** Follows the state that a search found and that changes without a notification. */
export class CarrierWatch extends Listeners {
  readonly #sysfsRoot: string;
  #latest: DiscoveredNetworks | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(sysfsRoot: string) {
    super();
    this.#sysfsRoot = sysfsRoot;
  }

  /** Notifies when a carrier differs from the latest search. If nothing can change, it does not wake the process. */
  follow(discovered: DiscoveredNetworks | undefined): void {
    this.#latest = discovered;
    const isNeeded = discovered !== undefined && (discovered.lacksAddress || discovered.carriers.size > 0);
    if (isNeeded) this.#timer ??= setInterval(() => this.#poll(), CARRIER_POLL_SECONDS * 1000);
    else this.end();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #poll(): void {
    const { lacksAddress = false, carriers = [] } = this.#latest ?? {};
    if (lacksAddress || [...carriers].some(([name, up]) => hasCarrier(this.#sysfsRoot, name) !== up)) this.notify();
  }
}
