import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import { Durations } from '../../runtime/problem-log.ts';
import { everyTick } from '../../runtime/time.ts';
import type { OnFileProblem } from '../files/state-file.ts';
import { Guard, Listeners, Throttle } from '../lifecycle/duty.ts';
import { followOvsdb, OVSDB_SOCKET } from '../open-vswitch/ovsdb/follow.ts';
import type { Tables } from '../open-vswitch/ovsdb/replica.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { combineNetworks, type NetworksView, UNKNOWN_NETWORKS } from './combine.ts';
import { type DiscoveredNetworks, locateNetworks } from './locate.ts';
import { type MapInUse, MapMemory } from './map-memory.ts';
import { MapSource } from './map-source.ts';
import { NicWatch } from './nic-watch.ts';
import { SwitchReading } from './switch-reading.ts';

/** Seconds in which changes are collected into one read: setting up a bridge takes several. */
const DEBOUNCE_SECONDS = 0.05;
/** The pause after a read, as a multiple of its duration: a busy switch must not keep the agent busy. */
const REST_FACTOR = 10;
/** Seconds between searches for what `NicWatch` does not see: drivers, addresses, members of bonds elsewhere. */
const CHECK_SECONDS = 30;

interface NetworksDeps {
  readonly sysfsRoot: string;
  readonly host: () => Promise<Host>;
  /** Calls the listener when the host may have changed. @returns a function that ends the subscription */
  readonly onHost?: (listener: () => void) => () => void;
  /** Undefined where the switch runs elsewhere (on a DPU). */
  readonly ovsRundir: string | undefined;
  readonly networkMap: string | undefined;
  /** The file of the last good map. */
  readonly lastMap: string;
  readonly onFileProblem?: OnFileProblem;
  /** The node's labels. @throws KubeError */
  readonly labels: (signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;
  readonly log: AgentLogger;
}

/**
 * Tracks where the node's networks are: the switch's configuration, sysfs, and the operator's map over both. Owner: this
 * duty; a restart of the duty keeps what it found. Age: what was found is as old as the last search, of at most 30 s; while the
 * switch or sysfs cannot be read it stays, with a problem. End: the next search.
 */
export class Networks extends Listeners {
  readonly #deps: NetworksDeps;
  readonly #switch: SwitchReading;
  readonly #map: MapSource;
  readonly #mapMemory: MapMemory;
  readonly #log: NetworksLog;
  #discovered: DiscoveredNetworks | undefined;
  #view = UNKNOWN_NETWORKS;
  /** The view as text, for comparison. */
  #viewText = '';
  #isComplete = false;

  constructor(deps: NetworksDeps) {
    super();
    this.#deps = deps;
    this.#switch = new SwitchReading(deps.log);
    this.#map = new MapSource({ file: deps.networkMap, readLabels: deps.labels, log: deps.log });
    this.#mapMemory = new MapMemory(deps.lastMap, deps.log, deps.onFileProblem);
    this.#log = new NetworksLog(deps.log);
  }

  view(): NetworksView {
    return this.#view;
  }

  /** Whether every source has been read once. Until then, missing networks may still appear. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** The duty. */
  async run(signal: AbortSignal): Promise<void> {
    const { ovsRundir, sysfsRoot, onHost, log } = this.#deps;
    let host = await this.#deps.host();
    const guard = new Guard();
    const nics = new NicWatch(sysfsRoot);
    const reconcile = guard.wrap(() => {
      const names = this.#switch.isTried ? nics.names() : '';
      this.#reconcile(host);
      nics.follow(this.#discovered, names);
    });
    const reconciles = new Throttle(reconcile, DEBOUNCE_SECONDS, REST_FACTOR);
    nics.subscribe(reconciles.now);
    this.#mapMemory.load(signal);
    const mapListeners = { onMap: reconciles.soon, onLabels: reconciles.now, onFailure: guard.fail };
    this.#map.follow(mapListeners, signal);
    if (ovsRundir !== undefined) {
      const onTables = (tables: Tables) => {
        this.#switch.answered(tables);
        reconciles.soon();
      };
      const onProblem = (error: Error) => {
        this.#switch.failed(error);
        reconciles.soon();
      };
      const socketPath = join(ovsRundir, OVSDB_SOCKET);
      followOvsdb({ socketPath, onTables, onProblem, log }, signal).catch(guard.fail);
    }
    const takeHost = (next: Host) => {
      host = next;
      reconciles.soon();
    };
    // A host that cannot be described keeps its last description, and is read again.
    const endOfHost = onHost?.(() => void this.#deps.host().then(takeHost, () => undefined));
    const endChecks = everyTick(CHECK_SECONDS, reconciles.now);
    reconciles.now();
    try {
      await guard.until(signal);
    } finally {
      endOfHost?.();
      endChecks();
      nics.end();
      reconciles.cancel();
    }
  }

  /** @throws Error if sysfs cannot be read */
  #reconcile(host: Host): void {
    const { ovsRundir, sysfsRoot } = this.#deps;
    if (ovsRundir !== undefined && !this.#switch.isTried) return;
    const { config, problem: switchProblem } = this.#switch;
    const cells = CpuSet.of(host.cells.map(({ id }) => id));
    if (config !== undefined && switchProblem === undefined)
      this.#discovered = locateNetworks(config, { sysfsRoot, cells, interfaceOf: interfaceFinder() });
    this.#isComplete = true;
    const map = this.#mapMemory.use({ map: this.#map.map, labels: this.#map.labels, cells });
    this.#switch.logProblem(this.#needsSwitch(map));
    this.#publish(
      combineNetworks({
        host,
        map,
        discovered: this.#discovered,
        pmdCpus: config?.pmdCpus ?? CpuSet.EMPTY,
        switchFaults: config?.problems ?? [],
        switchProblem,
      }),
    );
  }

  /** A node whose map has every network needs no switch. Until its labels are read, it is unknown which map it has. */
  #needsSwitch({ override, fault }: MapInUse): boolean | undefined {
    if (override !== undefined && this.#discovered === undefined) return false;
    return fault?.reason === 'NodeUnknown' ? undefined : true;
  }

  #publish(next: NetworksView): void {
    const text = JSON.stringify(next, (_key, value) =>
      value instanceof Map || value instanceof Set ? [...value] : value,
    );
    if (text === this.#viewText) return;
    this.#viewText = text;
    this.#view = next;
    this.#log.changed(next);
    this.notify();
  }
}

/** Logs each view that differs from the last one. */
class NetworksLog {
  readonly #log: AgentLogger;
  readonly #durations = new Durations();

  constructor(log: AgentLogger) {
    this.#log = log;
  }

  changed({ networks, down, pmdCpus, problems, mapFault = '', drift, unpolled }: NetworksView): void {
    const physnets = Object.fromEntries([...networks.physnets].map(([name, cells]) => [name, cells.toString()]));
    const downNetworks = [...down].map((name) => name ?? 'tunnel');
    const fields = { physnets, tunnel: networks.tunnel, down: downNetworks, pmdCpuMask: pmdCpus };
    const reasons = [mapFault, ...problems.map(({ message }) => message), ...drift, ...unpolled];
    const texts = [...new Set(reasons)].filter((text) => text !== '');
    // The labels arrive a moment after the agent's start.
    if (problems.some(({ reason }) => reason === 'NodeUnknown')) {
      this.#log.info(fields, 'waiting for the labels of the Node');
      return;
    }
    if (texts.length === 0) {
      this.#log.info({ ...fields, ...this.#durations.end('') }, 'network map updated');
      return;
    }
    this.#durations.begin('');
    const message = mapFault === '' ? 'network map updated with problems' : 'network map rejected';
    this.#log.warn({ ...fields, reasons: texts }, message);
  }
}

/** Lists the host's addresses at the first question: only a tunnel needs them, and listing them is expensive. */
function interfaceFinder(): (address: string) => string | undefined {
  let byAddress: ReadonlyMap<string, string> | undefined;
  return (address) => {
    byAddress ??= hostAddresses();
    return byAddress.get(address);
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
