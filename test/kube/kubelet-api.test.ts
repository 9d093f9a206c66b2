import assert from 'node:assert/strict';
import { EventEmitter, getEventListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type ClientUnaryCall, Server, type ServerUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import { registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import { type Empty, type RegisterRequest, RegistrationService } from '../../kube/kubelet-api/gen/device-plugin.ts';
import { type PodResourcesListerServer, PodResourcesListerService } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { createPodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import {
  bindUnix,
  closeServer,
  KubeletApiError,
  RpcError,
  SERVER_OPTIONS,
  unary,
  unaryHandler,
} from '../../kube/kubelet-api/transport.ts';
import { FakeKubelet } from '../node-agent/kubelet-stand-in.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';
import { podResourcesOf } from '../support/pod-resources.ts';
import { until } from '../support/until.ts';

const SITE = { method: 'List', socketPath: '/run/kubelet.sock' };
describe('a unary call to the kubelet', () => {
  beforeEach(() => mock.timers.enable({ apis: ['Date'], now: 100_000 }));
  afterEach(() => mock.timers.reset());

  /** A call whose answer a test gives. */
  const scripted = (limits?: Parameters<typeof unary>[3]) => {
    const sent: { deadline: number }[] = [];
    let cancelled = 0;
    let answer: (error: ServiceError | null, response?: string) => void = () => assert.fail('nothing was sent');
    const send: Parameters<typeof unary<object, string>>[2] = (_request, _metadata, options, done) => {
      sent.push(options);
      answer = done;
      return { cancel: () => cancelled++ } as unknown as ClientUnaryCall;
    };
    const result = unary<object, string>(SITE, {}, send, limits);
    const reply = (...parameters: Parameters<typeof answer>) => answer(...parameters);
    return { sent, result, answer: reply, cancelled: () => cancelled };
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

  it('aborts its signal when the call is cancelled, before or during the call', async () => {
    const signalOf = (call: Call) =>
      new Promise<AbortSignal>((resolve) => {
        unaryHandler((_, signal) => resolve(signal))(call, () => undefined);
      });
    assert.ok((await signalOf(callOf(true))).aborted);
    const call = callOf();
    const signal = await signalOf(call);
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
    const isNamed = ({ message }: Error) => message.startsWith(`cannot listen on ${path}: `);
    await assert.rejects(bindUnix(server, path), isNamed);
    server.forceShutdown();
  });

  for (const [label, grace, milliseconds, forcedInTime] of [
    ['ends with its calls within the given time', 3, 2999, 0],
    ['breaks calls off after a second', undefined, 1000, 1],
    ['breaks calls off after the given time', 0.1, 100, 1],
  ] as const) {
    it(label, async () => {
      let forced = 0;
      let isOver = false;
      let end = (): void => assert.fail('the server does not shut down');
      const tryShutdown = (done: () => void) => {
        end = done;
      };
      const server = { forceShutdown: () => forced++, tryShutdown } as unknown as Server;
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

describe('the sockets of the kubelet', () => {
  const temp = tempDirectories();
  let server: Server;
  let socket: string;
  beforeEach(() => {
    server = new Server(SERVER_OPTIONS);
    socket = join(temp(), 'kubelet.sock');
  });
  afterEach(() => server.forceShutdown());

  it('are connected again within the backoff after a restart of the kubelet', async () => {
    const directory = temp();
    const kubelet = new FakeKubelet(directory);
    const client = createPodResourcesClient(join(directory, 'pod-resources/kubelet.sock'));
    await kubelet.start();
    await client.list();
    await kubelet.stop();
    await assert.rejects(client.list(), { name: 'KubeletApiError', code: 'unavailable' });
    await kubelet.start();
    await until('the client connects again', () => client.list());
    client.close();
    await kubelet.stop();
  });

  it('may answer with 8 MiB, twice gRPC’s own limit', async () => {
    const memory = [{ memoryType: 'memory', size: 2 ** 30, topology: { nodes: [{ ID: 1 }] } }];
    const pod = { name: 'x'.repeat(1024), containers: [{ memory }] };
    const pods = Array.from({ length: 8192 }, () => podResourcesOf(pod));
    const lister: PodResourcesListerServer = {
      list: unaryHandler(() => ({ podResources: pods })),
      getAllocatableResources: unaryHandler(() => ({ devices: [], cpuIds: [], memory: [] })),
      get: unaryHandler(() => ({ podResources: undefined })),
    };
    server.addService(PodResourcesListerService, lister);
    await bindUnix(server, socket);
    const client = createPodResourcesClient(socket);
    const list = await client.list();
    assert.equal(list.length, 8192);
    assert.deepEqual(list[0]?.containers[0]?.memory, memory);
    client.close();
  });

  const options = { preStartRequired: true, getPreferredAllocationAvailable: false };
  const request = { endpoint: 'near.sock', resourceName: 'plumbline.dev/near', options };

  it('take the registration of a device plugin with the version of the API, and its connection is closed', async () => {
    const registered: RegisterRequest[] = [];
    const register = (sent: RegisterRequest): Empty => {
      registered.push(sent);
      return {};
    };
    server.addService(RegistrationService, { register: unaryHandler(register) });
    await bindUnix(server, socket);
    const pipes = () => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;
    const before = pipes();
    await registerPlugin(socket, request);
    assert.deepEqual(registered, [{ version: 'v1beta1', ...request }]);
    await eventually(() => pipes() <= before, 'the connection is closed');
  });

  it('fail a registration if no kubelet listens, or if it hangs', async () => {
    await assert.rejects(registerPlugin(socket, request), { name: 'KubeletApiError', code: 'unavailable' });
    server.addService(RegistrationService, { register: unaryHandler(() => new Promise<Empty>(() => undefined)) });
    await bindUnix(server, socket);
    await assert.rejects(registerPlugin(socket, request, { deadlineSeconds: 0.1 }), {
      name: 'KubeletApiError',
      code: 'deadline',
    });
  });
});
