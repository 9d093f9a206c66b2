import { existsSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { Backoff, monotonicSeconds, sleep, underSignals } from '../../../runtime/time.ts';
import { watchDirectory } from '../../files/watch-directory.ts';
import { connectOvsdb } from './connection.ts';
import { createReplica, type Tables } from './replica.ts';

/**
 * Seconds until the next attempt while there is no socket: its creation wakes the retry, so this only matters if that
 * event was lost.
 */
const ABSENT = 60;
const DATABASE = 'Open_vSwitch';
const MONITOR = 'plumbline';
/**
 * Seconds after which a connection resets the backoff when it ends. A connection that fails because of its content ends
 * earlier.
 */
const STEADY = 30;

/**
 * The monitored columns of Open vSwitch's configuration. Statistics and the like, which change all the time, are not
 * among them.
 */
export const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  Open_vSwitch: ['external_ids', 'other_config'],
  Bridge: ['name', 'ports', 'datapath_type'],
  Port: ['interfaces'],
  Interface: ['name', 'type', 'options', 'status', 'link_state'],
};

/**
 * The monitored rows, where not all are: a node has a tunnel's interface for each other node, and a VM's for each port
 * of it. Neither is an uplink.
 */
const CONDITIONS: Readonly<Record<string, readonly unknown[]>> = {
  Interface: ['', 'system', 'internal', 'dpdk', 'patch', 'afxdp', 'afxdp-nonpmd'].map((type) => ['type', '==', type]),
};

export interface FollowOptions {
  /** `db.sock` in Open vSwitch's run directory. */
  readonly socketPath: string;
  /** Called with the whole configuration, initially and after each change: the same tables, changed in place. */
  readonly onTables: (tables: Tables) => void;
  /** Called once each time the database becomes unreadable. */
  readonly onProblem: (error: Error) => void;
}

/**
 * Follows the configuration of Open vSwitch until the signal aborts: it connects, reads all of it once and receives
 * each change. It reconnects with increasing pauses, and at once when the socket is created again.
 */
export async function followOvsdb({ socketPath, onTables, onProblem }: FollowOptions, signal: AbortSignal) {
  const backoff = new Backoff({ first: 0.2, most: 10 });
  let wake = new AbortController();
  watchDirectory({
    path: dirname(socketPath),
    signal,
    onChange: (name) => {
      if (name === undefined || name === basename(socketPath)) wake.abort();
    },
  });
  while (!signal.aborted) {
    wake = new AbortController();
    try {
      await underSignals([signal], undefined, async (connected) => {
        const replica = createReplica(COLUMNS);
        const connection = connectOvsdb({
          socketPath,
          signal: connected,
          onNotification(method, [name, updates]) {
            if (method !== 'update2' || name !== MONITOR) return;
            replica.apply(updates);
            onTables(replica.tables);
          },
        });
        const initial = await connection.call('monitor_cond', [DATABASE, MONITOR, monitorRequests()]);
        replica.apply(initial);
        onTables(replica.tables);
        const since = monotonicSeconds();
        await connection.ended.finally(() => {
          if (monotonicSeconds() - since >= STEADY) backoff.reset();
        });
      });
    } catch (error) {
      if (!signal.aborted) onProblem(error as Error);
    }
    const { signal: woken } = wake;
    const wait = existsSync(socketPath) ? backoff.next() : ABSENT;
    await underSignals([signal, woken], undefined, (either) => sleep(wait, either)).catch(() => undefined);
  }
}

function monitorRequests() {
  const requests = Object.entries(COLUMNS).map(([table, columns]) => {
    return [table, [{ columns, where: CONDITIONS[table] ?? [true] }]];
  });
  return Object.fromEntries(requests);
}
