import assert from 'node:assert/strict';
import { decode, readText, statusError, unreachable } from '../../kube/calls.ts';
import { isAlreadyExists, isConflict, isExpired, isNotFound, KubeError } from '../../kube/client.ts';

describe('API calls', () => {
  it('name path and content type of an answer that is not JSON', () => {
    assert.deepEqual(decode('/p', '{"a":1}'), { a: 1 });
    assert.throws(() => decode('/p', '<html>', 'text/html'), {
      status: 0,
      reason: 'BadAnswer',
      message: '/p: the answer (text/html) is not JSON',
    });
    assert.throws(() => decode('/p', ''), { message: '/p: the answer (no content type) is not JSON' });
  });

  it('report a refusal with reason and message of the server, both shortened', () => {
    const of = (body: unknown) => statusError('GET', '/p', 403, typeof body === 'string' ? body : JSON.stringify(body));
    const full = of({ reason: 'Forbidden', message: 'no access' });
    assert.deepEqual([full.status, full.reason, full.message], [403, 'Forbidden', 'GET /p: 403 Forbidden: no access']);
    assert.equal(of('plain text').message, 'GET /p: 403 HTTP403');
    assert.equal(of({ reason: 7, message: 8 }).message, 'GET /p: 403 HTTP403');
    const long = of({ reason: 'R'.repeat(1000), message: 'm'.repeat(1000) });
    assert.equal(long.message, `GET /p: 403 ${'R'.repeat(64)}: ${'m'.repeat(512)}`);
  });

  it('report the reason of a signal that ended the request', () => {
    const of = (message: string, more: object) =>
      unreachable('GET', '/p', Object.assign(new Error(message), more)).message;
    const cause = new Error('no answer within 2 s');
    assert.equal(of('The operation was aborted', { name: 'AbortError', cause }), 'GET /p: no answer within 2 s');
    assert.equal(of('connect ECONNREFUSED', { cause }), 'GET /p: connect ECONNREFUSED');
    assert.equal(of('aborted', { name: 'AbortError' }), 'GET /p: aborted');
  });

  it('do not read the rest of an answer that is too large', async () => {
    let read = 0;
    const endless = async function* () {
      for (;;) {
        read++;
        yield Buffer.alloc(10);
      }
    };
    await assert.rejects(readText(endless(), 25), { name: 'KubeError', status: 0, reason: 'TooLarge' });
    assert.equal(read, 3);
  });

  it('accept an answer of 16 MiB unless the caller sets a limit', async () => {
    const answer = async function* (last: number) {
      for (let i = 0; i < 15; i++) yield Buffer.alloc(1024 * 1024, 'x');
      yield Buffer.alloc(last, 'x');
    };
    assert.equal((await readText(answer(1024 * 1024))).length, 16 * 1024 * 1024);
    const tooLarge = { status: 0, message: 'the answer is larger than 16777216 bytes' };
    await assert.rejects(readText(answer(1024 * 1024 + 1)), tooLarge);
  });
});

const QUESTIONS = { isNotFound, isAlreadyExists, isConflict, isExpired };
describe('an error of the API server', () => {
  for (const [status, reason, only] of [
    [404, 'NotFound', 'isNotFound'],
    [409, 'AlreadyExists', 'isAlreadyExists'],
    [409, 'Conflict', 'isConflict'],
    [409, 'HTTP409', 'isConflict'],
    [410, 'Expired', 'isExpired'],
    [403, 'Forbidden', undefined],
    [0, 'Unreachable', undefined],
  ] as const) {
    it(`${status} ${reason}: ${only ?? 'none of the known ones'}`, () => {
      for (const [name, holds] of Object.entries(QUESTIONS)) {
        assert.equal(holds(new KubeError(status, reason, 'text')), name === only, name);
        assert.equal(holds(Object.assign(new Error('of another origin'), { status, reason })), false, name);
        assert.equal(holds(undefined), false, name);
      }
    });
  }
});
