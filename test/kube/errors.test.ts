import assert from 'node:assert/strict';
import { isAlreadyExists, isConflict, isExpired, isNotFound, KubeError } from '../../kube/client.ts';

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
