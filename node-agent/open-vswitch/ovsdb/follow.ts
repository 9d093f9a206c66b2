import { existsSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';
import * as z from 'zod';
import { cut, PlumblineError, quote } from '../../../model/errors.ts';
import { Backoff, monotonicSeconds, underSignals } from '../../../runtime/time.ts';
import { watchDirectory } from '../../files/watch-directory.ts';
import { ChangeSignal } from '../../lifecycle/duty.ts';
import type { AgentLogger } from '../../telemetry/log-messages.ts';
import { JsonStream } from './json-stream.ts';
import { type Columns, OvsdbReplica, type Tables } from './replica.ts';

/** The monitored columns: none that change all the time, such as statistics. */
export const COLUMNS: Columns = {
  Open_vSwitch: ['external_ids', 'other_config'],
  Bridge: ['name', 'ports', 'datapath_type'],
  Port: ['interfaces'],
  Interface: ['name', 'type', 'options', 'status', 'link_state'],
};

/** The monitored rows: neither tunnels to other nodes nor VMs' ports, which are no uplinks. */
const CONDITIONS: Readonly<Record<string, readonly unknown[]>> = {
  Interface: ['', 'system', 'internal', 'dpdk', 'patch', 'afxdp', 'afxdp-nonpmd'].map((type) => ['type', '==', type]),
};

const MONITOR_REQUESTS = Object.fromEntries(
  Object.entries(COLUMNS).map(([table, columns]) => [table, [{ columns, where: CONDITIONS[table] ?? [true] }]]),
);

/** The socket of Open vSwitch's database in its run directory. */
export const OVSDB_SOCKET = 'db.sock';

/** Seconds until the next attempt without a socket, in case the event of its creation was lost. */
const ABSENT_RETRY_SECONDS = 60;
const DATABASE = 'Open_vSwitch';
const MONITOR = 'plumbline';
/** Seconds after which a connection resets the backoff; one that fails because of its content ends earlier. */
const STEADY_SECONDS = 30;

interface FollowOptions {
  readonly socketPath: string;
  /** Called with the whole configuration, initially and after each change: the same tables, changed in place. */
  readonly onTables: (tables: Tables) => void;
  /** Called once each time the database becomes unreadable. */
  readonly onProblem: (error: Error) => void;
  readonly log: AgentLogger;
}

/** Reads all once and receives each change. Reconnects with pauses, and at once when the socket appears again. */
export async function followOvsdb({ socketPath, onTables, onProblem, log }: FollowOptions, signal: AbortSignal) {
  const backoff = new Backoff({ first: 0.2, most: 10 });
  const appeared = new ChangeSignal();
  const onChange = (name: string | undefined) => {
    if (name === undefined || name === basename(socketPath)) appeared.set();
  };
  watchDirectory({ path: dirname(socketPath), signal, log, onChange });
  while (!signal.aborted) {
    appeared.clear();
    try {
      await underSignals([signal], undefined, async (connected) => {
        const replica = new OvsdbReplica(COLUMNS);
        const apply = (updates: unknown) => {
          replica.apply(updates);
          onTables(replica.tables);
        };
        const onNotification = (method: string, [name, updates]: readonly unknown[]) => {
          if (method === 'update2' && name === MONITOR) apply(updates);
        };
        const connection = new OvsdbConnection({ socketPath, signal: connected, onNotification });
        apply(await connection.call('monitor_cond', [DATABASE, MONITOR, MONITOR_REQUESTS]));
        const since = monotonicSeconds();
        await connection.ended.finally(() => {
          if (monotonicSeconds() - since >= STEADY_SECONDS) backoff.reset();
        });
      });
    } catch (error) {
      if (!signal.aborted) onProblem(error as Error);
    }
    await appeared.wait(signal, existsSync(socketPath) ? backoff.next() : ABSENT_RETRY_SECONDS);
  }
}

class OvsdbError extends PlumblineError {
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

/** A request has a method, a notification has one and no id, a reply has neither. */
const message = z.object({
  id: z.union([z.string(), z.number(), z.null()]).optional(),
  method: z.string().optional(),
  params: z.array(z.unknown()).optional(),
  result: z.unknown().optional(),
  error: z.unknown().optional(),
});

interface OvsdbConnectionOptions {
  readonly socketPath: string;
  readonly onNotification: (method: string, params: readonly unknown[]) => void;
  readonly signal: AbortSignal;
}

/** A call that the server has not answered yet; it ends by its answer, its deadline, or with the connection. */
interface WaitingCall {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly deadline: NodeJS.Timeout;
}

/** Answers echo requests, as the server demands. Source: RFC 7047, sections 4 and 4.1.11. */
export class OvsdbConnection {
  readonly #options: OvsdbConnectionOptions;
  readonly #socket: Socket;
  readonly #stream = new JsonStream();
  /** By the number of the call. */
  readonly #waiting = new Map<number, WaitingCall>();
  #lastNumber = 0;
  /** Rejects when the connection ends, with the reason. */
  readonly ended: Promise<never>;
  #end: (error: Error) => void = () => {};

  constructor(options: OvsdbConnectionOptions) {
    this.#options = options;
    this.ended = new Promise<never>((_resolve, reject) => {
      this.#end = reject;
    });
    // A caller that does not use `ended` learns of the end from its calls.
    this.ended.catch(() => undefined);
    this.#socket = createConnection(options.socketPath);
    this.#socket.on('data', (chunk) => {
      try {
        for (const value of this.#stream.read(chunk)) this.#receive(value);
      } catch (error) {
        this.#close(error as Error);
      }
    });
    this.#socket.on('error', (error) => this.#close(error));
    this.#socket.on('close', () => this.#close(this.#error('the server closed the connection')));
    if (options.signal.aborted) this.#abort();
    else options.signal.addEventListener('abort', this.#abort, { once: true });
  }

  /** @throws OvsdbError after the deadline, when the server answers with an error, or when the connection ends */
  call(method: string, params: readonly unknown[], seconds = DEADLINE_SECONDS): Promise<unknown> {
    const number = ++this.#lastNumber;
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(this.#error('the connection has ended'));
      const expire = () => {
        this.#waiting.delete(number);
        reject(this.#error(`no answer to ${method} in ${seconds} s`));
      };
      const deadline = setTimeout(expire, seconds * 1000);
      this.#waiting.set(number, { resolve, reject, deadline });
      this.#send({ id: number, method, params });
    });
  }

  readonly #abort = (): void => this.#close(this.#error('the connection is no longer needed'));

  #error(why: string, options?: ErrorOptions): OvsdbError {
    return new OvsdbError(this.#options.socketPath, why, options);
  }

  #send(value: object): void {
    this.#socket.write(JSON.stringify(value));
  }

  #receive(value: unknown): void {
    const { success, data } = message.safeParse(value);
    if (!success) throw this.#error('the server sent something other than a JSON-RPC message');
    const { id: number, method, params = [], result, error } = data;
    if (method === 'echo') this.#answerEcho({ id: number ?? null, result: params, error: null });
    else if (method !== undefined) this.#options.onNotification(method, params);
    else if (typeof number === 'number') this.#answered(number, result, error);
  }

  #answered(number: number, result: unknown, error: unknown): void {
    const call = this.#waiting.get(number);
    if (call === undefined) return;
    this.#waiting.delete(number);
    clearTimeout(call.deadline);
    if (error === null || error === undefined) call.resolve(result);
    else call.reject(this.#error(`the server answered ${quote(JSON.stringify(error))}`));
  }

  #answerEcho(answer: object): void {
    // Measure before sending: the server's own data must not fill the memory.
    if (JSON.stringify(answer).length > MAX_ECHO_BYTES) throw this.#error('an echo of more than 4 KiB');
    if (this.#socket.writableLength > MAX_UNSENT_BYTES) throw this.#error('the server does not read its answers');
    this.#send(answer);
  }

  #close(cause: Error): void {
    this.#socket.destroy();
    this.#options.signal.removeEventListener('abort', this.#abort);
    const reason = cut(cause.message, MAX_REASON_CHARACTERS);
    const error = cause instanceof PlumblineError ? cause : this.#error(reason, { cause });
    for (const { reject, deadline } of this.#waiting.values()) {
      clearTimeout(deadline);
      reject(error);
    }
    this.#waiting.clear();
    this.#end(error);
  }
}
