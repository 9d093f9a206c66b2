import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { errorText } from '../../model/errors.ts';
import { resultOrNone } from '../../model/json.ts';
import { secondsUntilTick, sleep, underSignals } from '../../runtime/time.ts';
import { OVS_DAEMONS, type OvsDaemonName, readPid } from './daemons.ts';
import { OVSDB_SOCKET, OvsdbConnection } from './ovsdb/follow.ts';

/** Seconds between questions, at the ticks of the other checks, and for an answer. */
const INTERVAL_SECONDS = 15;
const ANSWER_SECONDS = 3;

/** A request that every daemon answers from its main loop. Source: RFC 7047 section 4.1.11, and ovs-appctl(8). */
const METHODS = { 'ovsdb-server': 'echo', 'ovs-vswitchd': 'version' } as const satisfies Record<OvsDaemonName, string>;

/**
 * Asks both daemons of Open vSwitch, over a connection that stays open, whether they answer: one that hangs keeps its
 * sockets. Without the database's, nothing runs here, which is no problem of this kind.
 * @param onProblem called after each question
 */
export async function askSwitch(
  rundir: string,
  onProblem: (daemon: OvsDaemonName, problem: string | undefined) => void,
  signal: AbortSignal,
  intervalSeconds = INTERVAL_SECONDS,
): Promise<void> {
  const database = join(rundir, OVSDB_SOCKET);
  const socketOf = (name: OvsDaemonName): string | undefined => {
    if (!existsSync(database)) return undefined;
    if (name === 'ovsdb-server') return database;
    const pid = resultOrNone(() => readPid(join(rundir, `${name}.pid`)));
    const control = join(rundir, `${name}.${pid}.ctl`);
    return pid !== undefined && existsSync(control) ? control : undefined;
  };
  const follow = async (name: OvsDaemonName): Promise<void> => {
    while (!signal.aborted) {
      const socketPath = socketOf(name);
      if (socketPath === undefined) onProblem(name, undefined);
      else {
        const question = { socketPath, method: METHODS[name], intervalSeconds };
        await ask(question, () => onProblem(name, undefined), signal).catch((error: unknown) => {
          if (!signal.aborted) onProblem(name, `${name} does not answer: ${errorText(error)}`);
        });
      }
      await sleep(secondsUntilTick(intervalSeconds), signal).catch(() => undefined);
    }
  };
  await Promise.all(OVS_DAEMONS.map(follow));
}

/** Repeats a question until there is no answer. @throws OvsdbError with the reason */
function ask(
  { socketPath, method, intervalSeconds }: { socketPath: string; method: string; intervalSeconds: number },
  onAnswer: () => void,
  signal: AbortSignal,
): Promise<never> {
  return underSignals([signal], undefined, async (connected) => {
    const connection = new OvsdbConnection({ socketPath, signal: connected, onNotification: () => undefined });
    for (;;) {
      await connection.call(method, [], ANSWER_SECONDS);
      onAnswer();
      await Promise.race([connection.ended, sleep(secondsUntilTick(intervalSeconds), connected)]);
    }
  });
}

/** Asks a daemon once, over a connection of its own. @throws OvsdbError with the reason */
export function askOnce(name: OvsDaemonName, socketPath: string, seconds: number, signal: AbortSignal) {
  return underSignals([signal], undefined, (connected) => {
    const connection = new OvsdbConnection({ socketPath, signal: connected, onNotification: () => undefined });
    return connection.call(METHODS[name], [], seconds);
  });
}
