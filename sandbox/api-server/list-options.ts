import { forbiddenChange, invalid, type StatusCause } from './errors.ts';

const LIST_OPTIONS = { kind: 'ListOptions', group: 'meta.k8s.io', plural: 'listoptions' };

const matchIsForbidden = (why: string) => forbiddenChange('resourceVersionMatch', why);

/** Source: k8s.io/apimachinery/pkg/apis/meta/internalversion/validation. @throws ApiError 422 */
export function validateListOptions(query: URLSearchParams, isWatch: boolean): void {
  const causes = isWatch ? watchCauses(query) : listCauses(query);
  if (causes.length > 0) throw invalid(LIST_OPTIONS, '', causes);
}

function watchCauses(query: URLSearchParams): StatusCause[] {
  const match = query.get('resourceVersionMatch') ?? '';
  const sendsInitialEvents = query.get('sendInitialEvents') !== null;
  if (sendsInitialEvents && match !== 'NotOlderThan') {
    return [matchIsForbidden('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')];
  }
  if (!sendsInitialEvents && match !== '') {
    return [matchIsForbidden('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')];
  }
  return [];
}

function listCauses(query: URLSearchParams): StatusCause[] {
  const match = query.get('resourceVersionMatch') ?? '';
  const causes: StatusCause[] = [];
  if (match !== '' && !query.get('resourceVersion')) {
    causes.push(matchIsForbidden('resourceVersionMatch is forbidden unless resourceVersion is provided'));
  }
  if (match !== '' && query.get('continue')) {
    causes.push(matchIsForbidden('resourceVersionMatch is forbidden when continue is provided'));
  }
  if (match === 'Exact' && query.get('resourceVersion') === '0') {
    causes.push(matchIsForbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  if (query.get('sendInitialEvents') !== null) {
    causes.push(forbiddenChange('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  return causes;
}
