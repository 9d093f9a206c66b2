import assert from 'node:assert/strict';
import { ArgsError } from '../../../scheduler-plugin/wire/args-error.ts';
import { NameIndex } from '../../../scheduler-plugin/wire/name-index.ts';
import { ArgsDecoder } from '../../../scheduler-plugin/wire/wire.ts';

const podOf = (uid: string, annotation = '') => ({
  metadata: { name: 'vm', namespace: 'east', uid, annotations: { note: annotation } },
  spec: { containers: [{ name: 'compute', image: 'none', resources: { requests: { cpu: '4' } } }] },
});
const bodyOf = (pod: object, names: readonly string[]) =>
  Buffer.from(JSON.stringify({ Pod: pod, Nodes: null, NodeNames: names }));
const decoder = () => new ArgsDecoder(new NameIndex());

describe('the pod of consecutive calls', () => {
  it('is parsed once, and the names are those of each call', () => {
    const decode = decoder();
    const filter = decode.decode(bodyOf(podOf('a'), ['n1', 'n2', 'n3']));
    assert.equal(filter.names.count, 3);
    const prioritize = decode.decode(bodyOf(podOf('a'), ['n2']));
    assert.equal(prioritize.pod, filter.pod);
    assert.equal(prioritize.names.count, 1);
  });

  it('is another one if any byte differs', () => {
    const decode = decoder();
    const first = decode.decode(bodyOf(podOf('a', 'x'), ['n1'])).pod;
    const second = decode.decode(bodyOf(podOf('a', 'y'), ['n1'])).pod;
    assert.equal(first.metadata.annotations?.['note'], 'x');
    assert.equal(second.metadata.annotations?.['note'], 'y');
  });

  it('does not depend on the buffer, which the next body overwrites', () => {
    const decode = decoder();
    const buffer = bodyOf(podOf('a'), ['n1']);
    decode.decode(buffer);
    bodyOf(podOf('b'), ['n1']).copy(buffer);
    assert.equal(decode.decode(buffer).pod.metadata.uid, 'b');
    assert.equal(decode.decode(bodyOf(podOf('a'), ['n1'])).pod.metadata.uid, 'a');
  });

  it('is forgotten after others, and never remembered if it is large', () => {
    const decode = decoder();
    const first = decode.decode(bodyOf(podOf('a'), ['n1'])).pod;
    for (let other = 0; other < 16; other++) decode.decode(bodyOf(podOf(`other-${other}`), ['n1']));
    assert.notEqual(decode.decode(bodyOf(podOf('a'), ['n1'])).pod, first);
    const large = bodyOf(podOf('large', 'x'.repeat(40_000)), ['n1']);
    assert.notEqual(decode.decode(large).pod, decode.decode(large).pod);
  });

  it('is refused in each call if it is not valid', () => {
    const decode = decoder();
    const withoutUid = bodyOf(podOf(''), ['n1']);
    for (let call = 0; call < 2; call++) assert.throws(() => decode.decode(withoutUid), ArgsError);
  });
});
