import assert from 'node:assert/strict';
import { OWNER_LETTERS, ownerLetter, ownersByCpu } from '../../diagnosis/hosts.ts';

describe('the letters of the owners of CPUs', () => {
  it('begin with the pod that has the lowest CPU; the containers of a pod share one', () => {
    const owners = [
      { podUID: 'b', container: 'compute', cpus: '4-5,12-13' },
      { podUID: 'a', container: 'compute', cpus: '6-7' },
      { podUID: 'a', container: 'side', cpus: '2' },
    ];
    const lettered = ownersByCpu(owners).flatMap((pod, index) =>
      pod.map(({ podUID, container }) => `${ownerLetter(index)} ${podUID}/${container}`),
    );
    assert.deepEqual(lettered, ['A a/compute', 'A a/side', 'B b/compute']);
  });

  it('are none of the signs for reserved and polled CPUs, and repeat when there are more pods', () => {
    assert.doesNotMatch(OWNER_LETTERS, /[RP]/);
    assert.equal(new Set(OWNER_LETTERS).size, OWNER_LETTERS.length);
    assert.equal(ownerLetter(OWNER_LETTERS.length), 'A');
  });
});
