import { existsSync } from 'node:fs';
import { createConnection } from 'node:net';
import { basename, dirname } from 'node:path';
import * as z from 'zod';
import { cut, PlumblineError, quote } from '../../../model/errors.ts';
import { Backoff, monotonicSeconds, sleep, underSignals } from '../../../runtime/time.ts';
import { watchDirectory } from '../../files/watch-directory.ts';
import { createJsonStream } from './json-stream.ts';
import { createReplica, type Tables } from './replica.ts';

/** Seconds until the next attempt without a socket, in case the event of its creation was lost. */
const ABSENT_RETRY_SECONDS = 60;
const DATABASE = 'Open_vSwitch';
const MONITOR = 'plumbline';
/** Seconds after which a connection resets the backoff; one that fails because of its content ends earlier. */
const STEADY_SECONDS = 30;

/** The monitored columns: none that change all the time, such as statistics. */
export const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  Open_vSwitch: ['external_ids', 'other_config'],
  Bridge: ['name', 'ports', 'datapath_type'],
  Port: ['interfaces'],
  Interface: ['name', 'type', 'options', 'status', 'link_state'],
};

/** The monitored rows: neither tunnels to other nodes nor VMs' ports, which are no uplinks. */
const CONDITIONS: Readonly<Record<string, readonly unknown[]>> = {
  Interface: ['', 'system', 'internal', 'dpdk', 'patch', 'afxdp', 'afxdp-nonpmd'].map((type) => ['type', '==', type]),
};

export interface FollowOptions {
  readonly socketPath: string;
  /** Called with the whole configuration, initially and after each change: the same tables, changed in place. */
  readonly onTables: (tables: Tables) => void;
  /** Called once each time the database becomes unreadable. */
  readonly onProblem: (error: Error) => void;
}

/** Reads all once and receives each change. Reconnects with pauses, and at once when the socket appears again. */
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
          if (monotonicSeconds() - since >= STEADY_SECONDS) backoff.reset();
        });
      });
    } catch (error) {
      if (!signal.aborted) onProblem(error as Error);
    }
    const { signal: woken } = wake;
    const wait = existsSync(socketPath) ? backoff.next() : ABSENT_RETRY_SECONDS;
    await underSignals([signal, woken], undefined, (either) => sleep(wait, either)).catch(() => undefined);
  }
}

function monitorRequests() {
  const requests = Object.entries(COLUMNS).map(([table, columns]) => {
    return [table, [{ columns, where: CONDITIONS[table] ?? [true] }]];
  });
  return Object.fromEntries(requests);
}

export class OvsdbError extends PlumblineError {
  constructor(socketPath: string, why: string, options?: ErrorOptions) {
    super('ovsdb', `${socketPath}: ${why}`, options);
  }
}

/** Maximum bytes of an echo to answer, and of unsent answers: a server that sends requests must also read. */
const MAX_ECHO_BYTES = 4096;
const MAX_UNSENT_BYTES = 1024 * 1024;

/** Seconds in which a working server answers a request. */
const DEADLINE_SECONDS = 5;

const MAX_REASON_CHARACTERS = 300;

const id = z.union([z.string(), z.number(), z.null()]).optional();
/** A request has a method, a notification has one and no id, a reply has neither. */
const message = z.object({
  id,
  method: z.string().optional(),
  params: z.array(z.unknown()).optional(),
  result: z.unknown().optional(),
  error: z.unknown().optional(),
});

export interface OvsdbConnectionOptions {
  readonly socketPath: string;
  readonly onNotification: (method: string, params: readonly unknown[]) => void;
  readonly signal: AbortSignal;
}

/** Answers echo requests, as the server demands. Source: RFC 7047, sections 4 and 4.1.11. */
export function connectOvsdb({ socketPath, onNotification, signal }: OvsdbConnectionOptions) {
  const socket = createConnection(socketPath);
  const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  const read = createJsonStream();
  let last = 0;
  let end: (error: Error) => void = () => {};
  const ended = new Promise<never>((_resolve, reject) => {
    end = reject;
  });
  // A caller that does not use `ended` learns of the end from its calls.
  ended.catch(() => undefined);

  const send = (value: object) => void socket.write(JSON.stringify(value));

  const answerEcho = (number: unknown, params: readonly unknown[]) => {
    const answer = { id: number ?? null, result: params, error: null };
    // Measure before sending: the server's own data must not fill the memory.
    if (JSON.stringify(answer).length > MAX_ECHO_BYTES) throw new OvsdbError(socketPath, 'an echo of more than 4 KiB');
    if (socket.writableLength > MAX_UNSENT_BYTES)
      throw new OvsdbError(socketPath, 'the server does not read its answers');
    send(answer);
  };

  const receive = (value: unknown) => {
    const { success, data } = message.safeParse(value);
    if (!success) throw new OvsdbError(socketPath, 'the server sent something other than a JSON-RPC message');
    const { id: number, method, params = [], result, error } = data;
    if (method === 'echo') return answerEcho(number, params);
    if (method !== undefined) return onNotification(method, params);
    const call = typeof number === 'number' ? waiting.get(number) : undefined;
    if (call === undefined) return;
    waiting.delete(number as number);
    if (error === null || error === undefined) call.resolve(result);
    else call.reject(new OvsdbError(socketPath, `the server answered ${quote(JSON.stringify(error))}`));
  };

  const close = (cause: Error) => {
    socket.destroy();
    signal.removeEventListener('abort', abort);
    const error =
      cause instanceof PlumblineError
        ? cause
        : new OvsdbError(socketPath, cut(cause.message, MAX_REASON_CHARACTERS), { cause });
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
    end(error);
  };
  function abort() {
    close(new OvsdbError(socketPath, 'the connection is no longer needed'));
  }

  socket.on('data', (chunk) => {
    try {
      for (const value of read(chunk)) receive(value);
    } catch (error) {
      close(error as Error);
    }
  });
  socket.on('error', close);
  socket.on('close', () => close(new OvsdbError(socketPath, 'the server closed the connection')));
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });

  return {
    ended,
    /** @throws OvsdbError after 5 s, when the server answers with an error, or when the connection ends */
    call(method: string, params: readonly unknown[]): Promise<unknown> {
      const number = ++last;
      return new Promise((resolve, reject) => {
        if (socket.destroyed) return reject(new OvsdbError(socketPath, 'the connection has ended'));
        const timer = setTimeout(() => {
          waiting.delete(number);
          reject(new OvsdbError(socketPath, `no answer to ${method} in ${DEADLINE_SECONDS} s`));
        }, DEADLINE_SECONDS * 1000);
        const done =
          <Value>(settle: (value: Value) => void) =>
          (value: Value) => {
            clearTimeout(timer);
            settle(value);
          };
        waiting.set(number, { resolve: done(resolve), reject: done(reject) });
        send({ id: number, method, params });
      });
    },
  };
}
