import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { abortSignalOf, bindUnix, RpcError, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import { tempDirectories } from '../support/files.ts';

type Call = ServerUnaryCall<unknown, unknown>;

const callOf = (cancelled = false) => Object.assign(new EventEmitter(), { request: {}, cancelled }) as unknown as Call;

/** The answer that the caller receives. */
const answerOf = (answer: () => unknown) =>
  new Promise<unknown[]>((resolve) => {
    unaryHandler(answer)(callOf(), (...args: unknown[]) => resolve(args));
  });

describe('a gRPC handler', () => {
  it('keeps the status of an RpcError; any other error is INTERNAL with its message', async () => {
    const failing = (error: unknown) =>
      answerOf(() => {
        throw error;
      });
    assert.deepEqual(await failing(new RpcError(status.NOT_FOUND, 'no such pod')), [
      { code: status.NOT_FOUND, details: 'no such pod' },
    ]);
    assert.deepEqual(await failing(new TypeError('x is undefined')), [
      { code: status.INTERNAL, details: 'x is undefined' },
    ]);
    assert.deepEqual(await failing('a text'), [{ code: status.INTERNAL, details: 'a text' }]);
  });

  it('aborts its signal when the call is cancelled, before or during the call', async () => {
    assert.ok(abortSignalOf(callOf(true)).aborted);
    const call = callOf();
    const signal = abortSignalOf(call);
    assert.ok(!signal.aborted);
    (call as unknown as EventEmitter).emit('cancelled', 'cancelled');
    assert.ok(signal.aborted);
  });
});

describe('a gRPC server on a socket', () => {
  const temp = tempDirectories();

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
});
