import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type ClientUnaryCall, type Server, type ServiceError, status } from '@grpc/grpc-js';
import { closeServer, KubeletApiError, unary } from '../../kube/kubelet-api/transport.ts';

const SITE = { method: 'List', socketPath: '/run/kubelet.sock' };
const failure = (code: number, details: string) => Object.assign(new Error(details), { code, details }) as ServiceError;

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

  it('has a deadline of 5 s, or the given one', async () => {
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
    running.answer(failure(status.CANCELLED, 'Cancelled on client'));
    await assert.rejects(running.result, { code: 'cancelled' });
  });
});

describe('an error of the kubelet’s API', () => {
  const of = (cause: { code?: number; details?: string }) => new KubeletApiError('Get', '/s', cause);

  it('has the code of its gRPC status, and the text of the other side', () => {
    const expected: readonly (readonly [number, string, string])[] = [
      [
        status.UNAVAILABLE,
        'unavailable',
        'no answer (text); check that the kubelet runs and that its directory is mounted here',
      ],
      [status.DEADLINE_EXCEEDED, 'deadline', 'no answer in time; the socket accepts connections but the call hangs'],
      [status.RESOURCE_EXHAUSTED, 'exhausted', 'the kubelet limits how often it may be asked (text)'],
      [status.CANCELLED, 'cancelled', 'text'],
      [status.NOT_FOUND, 'not-found', 'text'],
      [status.UNIMPLEMENTED, 'unimplemented', 'text'],
      [status.FAILED_PRECONDITION, 'refused', 'text'],
      [status.INTERNAL, 'failed', 'text'],
    ];
    for (const [code, word, text] of expected) {
      const error = of({ code, details: 'text' });
      assert.deepEqual([error.code, error.message], [word, `Get on /s: ${text}`]);
    }
  });

  it('names its code if the other side gives no text or no status', () => {
    assert.equal(of({ code: status.NOT_FOUND, details: '' }).message, 'Get on /s: not-found');
    assert.equal(of({ code: status.UNAVAILABLE }).message.includes('no answer ();'), true);
    assert.deepEqual([of({}).code, of({}).message], ['failed', 'Get on /s: failed']);
  });
});

describe('the end of a gRPC server', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  /** A server with a call that a test ends. */
  const serverWithCall = () => {
    let forced = 0;
    let end = (): void => assert.fail('the server does not shut down');
    const server = {
      forceShutdown: () => forced++,
      tryShutdown: (done: () => void) => {
        end = done;
      },
    };
    return { server: server as unknown as Server, forced: () => forced, end: () => end() };
  };
  const isOver = async (closed: Promise<void>) => {
    let over = false;
    void closed.then(() => {
      over = true;
    });
    await setImmediate();
    return over;
  };

  it('waits for calls, and does not break them off if they end in time', async () => {
    const { server, forced, end } = serverWithCall();
    const closed = closeServer(server, 3);
    mock.timers.tick(2999);
    assert.equal(await isOver(closed), false);
    end();
    await closed;
    mock.timers.tick(10_000);
    assert.equal(forced(), 0);
  });

  for (const [grace, milliseconds] of [
    [undefined, 1000],
    [0.1, 100],
  ] as const) {
    it(`breaks calls off after ${milliseconds} ms`, async () => {
      const { server, forced, end } = serverWithCall();
      const closed = closeServer(server, grace);
      mock.timers.tick(milliseconds - 1);
      assert.equal(forced(), 0);
      mock.timers.tick(1);
      assert.equal(forced(), 1);
      end();
      await closed;
    });
  }
});
