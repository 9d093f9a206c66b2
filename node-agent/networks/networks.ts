import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import { Durations, ProblemLog } from '../../runtime/problem-log.ts';
import { everyTick } from '../../runtime/time.ts';
import { Guard, Listeners, Throttle } from '../lifecycle/duty.ts';
import { followOvsdb, OVSDB_SOCKET } from '../open-vswitch/ovsdb/follow.ts';
import type { Tables } from '../open-vswitch/ovsdb/replica.ts';
import type { AgentMessages } from '../telemetry/log-messages.ts';
import { combineNetworks, type NetworksView, UNKNOWN_NETWORKS } from './combine.ts';
import { type DiscoveredNetworks, locateNetworks } from './locate.ts';
import { NicWatch } from './nic-watch.ts';
import { type MapInUse, NodeMap, type NodeMapDeps } from './node-map.ts';
import { type SwitchConfig, switchConfig } from './switch-config.ts';

/** Seconds in which changes are collected into one read: setting up a bridge takes several. */
const DEBOUNCE_SECONDS = 0.05;
/** The pause after a read, as a multiple of its duration: a busy switch must not keep the agent busy. */
const REST_FACTOR = 10;
/** Seconds between searches for what `NicWatch` does not see: drivers, addresses, members of bonds elsewhere. */
const CHECK_SECONDS = 30;

interface NetworksDeps extends NodeMapDeps {
  readonly sysfsRoot: string;
  readonly host: () => Promise<Host>;
  /** Calls the listener when the host may have changed. @returns a function that ends the subscription */
  readonly onHost?: (listener: () => void) => () => void;
  /** Undefined where the switch runs elsewhere (on a DPU). */
  readonly ovsRundir: string | undefined;
}

/**
 * Tracks where the node's networks are: the switch's configuration, sysfs, and the operator's map over both. Owner: this
 * duty; a restart of the duty keeps what it found. Age: what was found is as old as the last search, of at most 30 s; while the
 * switch or sysfs cannot be read it stays, with a problem. End: the next search.
 */
export class Networks extends Listeners {
  readonly #deps: NetworksDeps;
  readonly #map: NodeMap;
  /** An answer of the switch that was not parsed yet: the connection changes its tables in place. */
  #tables: Tables | undefined;
  /** What the switch said last, which is of any age while there is a problem with it. */
  #config: SwitchConfig | undefined;
  #switchProblem: string | undefined;
  readonly #switchProblems: ProblemLog<AgentMessages>;
  /** Whether the log says that the map alone is in use. */
  #isAbsenceLogged = false;
  readonly #troubles = new Durations();
  #discovered: DiscoveredNetworks | undefined;
  #view = UNKNOWN_NETWORKS;
  /** The view as text, for comparison. */
  #viewText = '';
  #isComplete = false;

  constructor(deps: NetworksDeps) {
    super();
    this.#deps = deps;
    this.#map = new NodeMap(deps);
    this.#switchProblems = new ProblemLog(deps.log);
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
      const names = this.#isSwitchTried ? nics.names() : '';
      this.#reconcile(host);
      nics.follow(this.#discovered, names);
    });
    const reconciles = new Throttle(reconcile, DEBOUNCE_SECONDS, REST_FACTOR);
    nics.subscribe(reconciles.now);
    this.#map.follow({ onMap: reconciles.soon, onLabels: reconciles.now, onFailure: guard.fail }, signal);
    if (ovsRundir !== undefined) {
      const take = (tables: Tables | undefined, problem?: Error) => {
        this.#tables = tables ?? this.#tables;
        this.#switchProblem = problem?.message;
        reconciles.soon();
      };
      const onProblem = (problem: Error) => take(undefined, problem);
      const socketPath = join(ovsRundir, OVSDB_SOCKET);
      followOvsdb({ socketPath, onTables: take, onProblem, log }, signal).catch(guard.fail);
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
    if (ovsRundir !== undefined && !this.#isSwitchTried) return;
    if (this.#tables !== undefined) this.#config = switchConfig(this.#tables);
    this.#tables = undefined;
    const config = this.#config;
    const switchProblem = this.#switchProblem;
    const cells = CpuSet.of(host.cells.map(({ id }) => id));
    if (config !== undefined && switchProblem === undefined)
      this.#discovered = locateNetworks(config, { sysfsRoot, cells, interfaceOf: interfaceFinder() });
    this.#isComplete = true;
    const map = this.#map.use(cells);
    this.#logSwitchProblem(map);
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

  /** Whether the switch has answered, or cannot. */
  get #isSwitchTried(): boolean {
    return this.#switchProblem !== undefined || this.#config !== undefined || this.#tables !== undefined;
  }

  #logSwitchProblem({ override, fault }: MapInUse): void {
    const reason = this.#switchProblem;
    // A node whose map has every network needs no switch. Until its labels are read, it is unknown which map it has.
    const isNeeded = override === undefined || this.#discovered !== undefined;
    if (reason === undefined) {
      this.#switchProblems.recovered();
      this.#isAbsenceLogged = false;
    } else if (!isNeeded) {
      if (!this.#isAbsenceLogged) this.#deps.log.info({ reason }, 'no Open vSwitch; using the network map alone');
      this.#isAbsenceLogged = true;
    } else if (fault?.reason !== 'NodeUnknown') {
      this.#switchProblems.failed(reason, 'querying Open vSwitch failed; retrying');
    }
  }

  #publish(next: NetworksView): void {
    const text = JSON.stringify(next, (_key, value) =>
      value instanceof Map || value instanceof Set ? [...value] : value,
    );
    if (text === this.#viewText) return;
    this.#viewText = text;
    this.#view = next;
    this.#logChange(next);
    this.notify();
  }

  #logChange({ networks, down, pmdCpus, problems, mapFault = '', drift, unpolled }: NetworksView): void {
    const { log } = this.#deps;
    const physnets = Object.fromEntries([...networks.physnets].map(([name, cells]) => [name, cells.toString()]));
    const downNetworks = [...down].map((name) => name ?? 'tunnel');
    const fields = { physnets, tunnel: networks.tunnel, down: downNetworks, pmdCpuMask: pmdCpus };
    const reasons = [mapFault, ...problems.map(({ message }) => message), ...drift, ...unpolled];
    const texts = [...new Set(reasons)].filter((text) => text !== '');
    // The labels arrive a moment after the agent's start.
    if (problems.some(({ reason }) => reason === 'NodeUnknown')) {
      log.info(fields, 'waiting for the labels of the Node');
    } else if (texts.length === 0) {
      log.info({ ...fields, ...this.#troubles.end('') }, 'network map updated');
    } else {
      this.#troubles.begin('');
      const message = mapFault === '' ? 'network map updated with problems' : 'network map rejected';
      log.warn({ ...fields, reasons: texts }, message);
    }
  }
}

/** Lists the host's addresses at the first question: only a tunnel needs them, and listing them is expensive. */
function interfaceFinder(): (address: string) => string | undefined {
  let names: ReadonlyMap<string, string> | undefined;
  return (address) => {
    // A label such as eth0:1 belongs to the interface before its colon.
    names ??= new Map(
      Object.entries(networkInterfaces()).flatMap(([label, addresses = []]) =>
        addresses.map((entry) => [entry.address, label.split(':')[0] ?? label]),
      ),
    );
    return names.get(address);
  };
}
