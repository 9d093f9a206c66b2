import { join } from 'node:path';
import type { Logger } from '../../runtime/log.ts';
import { Counter, Gauge, type Registry } from '../../runtime/metrics.ts';
import { underSignals } from '../../runtime/signals.ts';
import { createProblemLog } from '../telemetry/problem-log.ts';
import { readPid } from './daemons.ts';
import { type DatapathCounters, parseDatapaths } from './datapath-counters.ts';
import { connectOvsdb } from './ovsdb/connection.ts';

/** Seconds that a scrape waits for ovs-vswitchd, whose main thread answers when it has time. */
const DEADLINE = 1;
/** Seconds that one answer is reused: frequent scrapes of the agent must not load ovs-vswitchd. */
const FRESH = 5;

export interface DatapathMetricsDeps {
  /** The directory of ovs-vswitchd's pidfile and control socket. */
  readonly rundir: string;
  readonly log: Logger;
}

/**
 * Registers Open vSwitch's own counters: dropped packets show whether it has enough CPUs. A scrape reads them with the
 * one read-only command that returns all of them; they are absent while ovs-vswitchd does not answer.
 */
export function registerDatapathMetrics(registry: Registry, deps: DatapathMetricsDeps): void {
  const registers = [registry];
  const problems = createProblemLog(deps.log);
  const ask = cached(() => askDatapaths(deps.rundir));
  let filling: Promise<void> | undefined;
  /** Sets all metrics. Each gauge waits for it, since the registry collects them concurrently. */
  const collect = async (): Promise<void> => {
    filling ??= fill().finally(() => {
      filling = undefined;
    });
    await filling;
  };
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name: `plumbline_ovs_datapath_${name}`, help, labelNames, registers, collect });
  const upcalls = counter('upcalls_total', 'Packets without a flow that went to ovs-vswitchd', ['datapath']);
  const lost = counter('lost_total', 'Packets without a flow that were dropped before they reached ovs-vswitchd', [
    'datapath',
  ]);
  const dropped = counter('port_drops_total', 'Packets that ports dropped', ['datapath', 'direction']);
  const failures = counter('failures_total', 'Scrapes in which ovs-vswitchd did not return its counters', []);
  const flows = new Gauge({
    name: 'plumbline_ovs_datapath_flows',
    help: 'Flows in the datapath',
    labelNames: ['datapath'],
    registers,
    collect,
  });

  const fill = async () => {
    for (const metric of [upcalls, lost, dropped, flows]) metric.reset();
    let found: readonly DatapathCounters[];
    try {
      found = await ask();
      problems.gone();
    } catch (error) {
      failures.inc();
      problems.met(error, 'reading the counters of Open vSwitch failed');
      return;
    }
    for (const one of found) {
      const { datapath } = one;
      if (one.upcalls !== undefined) upcalls.inc({ datapath }, one.upcalls);
      if (one.lost !== undefined) lost.inc({ datapath }, one.lost);
      if (one.flows !== undefined) flows.set({ datapath }, one.flows);
      dropped.inc({ datapath, direction: 'rx' }, one.dropped.rx);
      dropped.inc({ datapath, direction: 'tx' }, one.dropped.tx);
    }
  };
}

/**
 * Queries ovs-vswitchd over its control socket, which uses the protocol of its database: JSON-RPC 1.0.
 *
 * @throws OvsdbError, or the error of the pidfile
 */
export async function askDatapaths(rundir: string): Promise<DatapathCounters[]> {
  const pid = readPid(join(rundir, 'ovs-vswitchd.pid'));
  return underSignals([], DEADLINE, async (signal) => {
    const socketPath = join(rundir, `ovs-vswitchd.${pid}.ctl`);
    const connection = connectOvsdb({ socketPath, onNotification: () => undefined, signal });
    return parseDatapaths(String(await connection.call('dpctl/show', ['-s'])));
  });
}

/** The last answer while it is fresh; concurrent calls share one. */
function cached<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  let last: { readonly at: number; readonly value: Promise<Value> } | undefined;
  return () => {
    const now = performance.now();
    if (last === undefined || now - last.at > FRESH * 1000) last = { at: now, value: ask() };
    return last.value;
  };
}
