import assert from 'node:assert/strict';
import { EventEmitter, getEventListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type ClientUnaryCall, Server, type ServerUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import {
  abortSignalOf,
  bindUnix,
  closeServer,
  KubeletApiError,
  RpcError,
  SERVER_OPTIONS,
  unary,
  unaryHandler,
} from '../../kube/kubelet-api/transport.ts';
import { tempDirectories } from '../support/files.ts';

const SITE = { method: 'List', socketPath: '/run/kubelet.sock' };

describe('a unary call to the kubelet', () => {
  beforeEach(() => mock.timers.enable({ apis: ['Date'], now: 100_000 }));
  afterEach(() => mock.timers.reset());

  /** A call whose answer a test gives. */
  const scripted = (limits?: Parameters<typeof unary>[3]) => {
    const sent: { deadline: number }[] = [];
    let cancelled = 0;
    let answer: (error: ServiceError | null, response?: string) => void = () => assert.fail('nothing was sent');
    const result = unary<object, string>(
      SITE,
      {},
      (_request, _metadata, options, done) => {
        sent.push(options);
        answer = done;
        return { cancel: () => cancelled++ } as unknown as ClientUnaryCall;
      },
      limits,
    );
    return {
      sent,
      result,
      answer: (...parameters: Parameters<typeof answer>) => answer(...parameters),
      cancelled: () => cancelled,
    };
  };

  it('has a deadline of 5 s, or the given one', () => {
    assert.deepEqual(scripted().sent, [{ deadline: 105_000 }]);
    assert.deepEqual(scripted({ deadlineSeconds: 0.5 }).sent, [{ deadline: 100_500 }]);
  });

  it('is not sent after the signal', async () => {
    const call = scripted({ signal: AbortSignal.abort() });
    await assert.rejects(call.result, { code: 'cancelled', message: 'List on /run/kubelet.sock: the caller gave up' });
    assert.deepEqual(call.sent, []);
  });

  it('is cancelled by the signal, and leaves no listener on it after the answer', async () => {
    const stop = new AbortController();
    const [ended, running] = [scripted({ signal: stop.signal }), scripted({ signal: stop.signal })];
    ended.answer(null, 'pods');
    await ended.result;
    assert.equal(getEventListeners(stop.signal, 'abort').length, 1);
    stop.abort();
    assert.deepEqual([ended.cancelled(), running.cancelled()], [0, 1]);
    running.answer(Object.assign(new Error('cancelled'), { code: status.CANCELLED }) as ServiceError);
    await assert.rejects(running.result, { code: 'cancelled' });
  });
});

describe('an error of the kubelet’s API', () => {
  const ERRORS: readonly [label: string, code: number | undefined, details: string, word: string, text: string][] = [
    ['no server', status.UNAVAILABLE, 'text', 'unavailable', 'no answer (text); check that the kubelet runs'],
    ['a hanging server', status.DEADLINE_EXCEEDED, 'text', 'deadline', 'no answer in time'],
    ['too many calls', status.RESOURCE_EXHAUSTED, 'text', 'exhausted', 'the kubelet limits how often'],
    ['a cancelled call', status.CANCELLED, 'text', 'cancelled', 'text'],
    ['an unknown pod', status.NOT_FOUND, 'text', 'not-found', 'text'],
    ['no text', status.NOT_FOUND, '', 'not-found', 'not-found'],
    ['an old kubelet', status.UNIMPLEMENTED, 'text', 'unimplemented', 'text'],
    ['a refusal', status.FAILED_PRECONDITION, 'text', 'refused', 'text'],
    ['any other status', status.INTERNAL, 'text', 'failed', 'text'],
    ['no status', undefined, '', 'failed', 'failed'],
  ];
  for (const [label, code, details, word, text] of ERRORS) {
    it(`has the code ${word}: ${label}`, () => {
      const error = new KubeletApiError('Get', '/s', code === undefined ? {} : { code, details });
      assert.equal(error.code, word);
      assert.ok(error.message.startsWith(`Get on /s: ${text}`), error.message);
    });
  }
});

describe('a gRPC handler', () => {
  type Call = ServerUnaryCall<unknown, unknown>;
  const callOf = (cancelled = false) =>
    Object.assign(new EventEmitter(), { request: {}, cancelled }) as unknown as Call;

  it('keeps the status of an RpcError; any other error is INTERNAL with its message', async () => {
    for (const [error, code, details] of [
      [new RpcError(status.NOT_FOUND, 'no such pod'), status.NOT_FOUND, 'no such pod'],
      [new TypeError('x is undefined'), status.INTERNAL, 'x is undefined'],
      ['a text', status.INTERNAL, 'a text'],
    ] as const) {
      const answer = new Promise((resolve) => {
        unaryHandler(() => Promise.reject(error))(callOf(), resolve);
      });
      assert.deepEqual(await answer, { code, details });
    }
  });

  it('aborts its signal when the call is cancelled, before or during the call', () => {
    assert.ok(abortSignalOf(callOf(true)).aborted);
    const call = callOf();
    const signal = abortSignalOf(call);
    assert.ok(!signal.aborted);
    (call as unknown as EventEmitter).emit('cancelled', 'cancelled');
    assert.ok(signal.aborted);
  });
});

describe('a gRPC server', () => {
  const temp = tempDirectories();
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('fails with the path if it cannot listen', async () => {
    const file = join(temp(), 'file');
    writeFileSync(file, '');
    const server = new Server(SERVER_OPTIONS);
    const path = join(file, 'kubelet.sock');
    await assert.rejects(bindUnix(server, path), (error: Error) =>
      error.message.startsWith(`cannot listen on ${path}: `),
    );
    server.forceShutdown();
  });

  for (const [label, grace, milliseconds, forcedInTime] of [
    ['ends with its calls within the given time', 3, 2999, 0],
    ['breaks calls off after a second', undefined, 1000, 1],
    ['breaks calls off after the given time', 0.1, 100, 1],
  ] as const) {
    it(label, async () => {
      let forced = 0;
      let end = (): void => assert.fail('the server does not shut down');
      const server = {
        forceShutdown: () => forced++,
        tryShutdown: (done: () => void) => {
          end = done;
        },
      } as unknown as Server;
      let isOver = false;
      const closed = closeServer(server, grace).then(() => {
        isOver = true;
      });
      mock.timers.tick(milliseconds - 1);
      assert.equal(forced, 0);
      mock.timers.tick(1);
      await setImmediate();
      assert.deepEqual([forced, isOver], [forcedInTime, false]);
      end();
      await closed;
      mock.timers.tick(10_000);
      assert.equal(forced, forcedInTime);
    });
  }
});
