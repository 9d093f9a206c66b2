import { basename, dirname } from 'node:path';
import { underSignals } from '../../runtime/signals.ts';
import { Backoff, sleep } from '../../runtime/time.ts';
import { watchDirectory } from '../watch-directory.ts';
import { connectOvsdb } from './connection.ts';
import { applyUpdates, NO_TABLES, type Tables } from './replica.ts';

const DATABASE = 'Open_vSwitch';
const MONITOR = 'plumbline';

/** What is read of Open vSwitch's configuration. Statistics and the like, which change all the time, are not. */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  Open_vSwitch: ['external_ids', 'other_config'],
  Bridge: ['name', 'ports', 'datapath_type'],
  Port: ['name', 'interfaces'],
  Interface: ['name', 'type', 'options', 'status', 'link_state'],
};

export interface FollowOptions {
  /** `db.sock` in Open vSwitch's run directory. */
  readonly socketPath: string;
  /** Told of the whole configuration, at first and after each change. */
  readonly onTables: (tables: Tables) => void;
  /** Told once each time the database cannot be read any more. */
  readonly onProblem: (error: Error) => void;
}

/**
 * Follows the configuration of Open vSwitch until the signal aborts: connects, asks for everything once and is told of
 * each change. A connection that ends is made anew with growing pauses, at once when the socket is re-created.
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
        let tables: Tables = NO_TABLES;
        const connection = connectOvsdb({
          socketPath,
          signal: connected,
          onNotification(method, [name, updates]) {
            if (method !== 'update' || name !== MONITOR) return;
            tables = applyUpdates(tables, updates);
            onTables(tables);
          },
        });
        const initial = await connection.call('monitor', [DATABASE, MONITOR, monitorRequests()]);
        tables = applyUpdates(tables, initial);
        onTables(tables);
        backoff.reset();
        await connection.ended;
      });
    } catch (error) {
      if (!signal.aborted) onProblem(error as Error);
    }
    const { signal: woken } = wake;
    await underSignals([signal, woken], undefined, (either) => sleep(backoff.next(), either)).catch(() => undefined);
  }
}

function monitorRequests() {
  return Object.fromEntries(Object.entries(COLUMNS).map(([table, columns]) => [table, [{ columns }]]));
}
