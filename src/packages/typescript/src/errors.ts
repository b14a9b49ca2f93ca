// What a server refuses, as classes by its `code`. Texts may change; codes do not.

/** What the server said of a refusal. */
export interface Refusal {
  code: string | null;
  message: string;
  param: string | null;
  type: string;
  details?: Record<string, unknown>;
}

/** Any failure of a call: a refusal of the server, or no answer at all. */
export class ConvoError extends Error {
  /** Decide by it. `null` where the server said none. */
  readonly code: string | null;
  readonly param: string | null;
  readonly details: Record<string, unknown>;

  constructor(
    refusal: Partial<Refusal> & { message: string },
    /** The status of HTTP; 0 without an answer. */
    readonly status = 0,
    /** After so many seconds a repetition may succeed. */
    readonly retryAfter?: number,
    readonly requestId?: string,
    options?: ErrorOptions,
  ) {
    super(refusal.message, options);
    this.name = new.target.name;
    this.code = refusal.code ?? null;
    this.param = refusal.param ?? null;
    this.details = refusal.details ?? {};
  }
}

/** There is no answer: the server could not be reached, or the connection broke. */
export class ConnectionError extends ConvoError {}
/** The request is wrong: correct what `param` names. */
export class InvalidRequestError extends ConvoError {}
/** No key, or a wrong one. */
export class UnauthorizedError extends ConvoError {}
/** The key lacks a scope. */
export class ForbiddenError extends ConvoError {}
/** It does not exist, or belongs to another owner. */
export class NotFoundError extends ConvoError {}
/** It conflicts with what is stored: read that. */
export class ConflictError extends ConvoError {}
/** The conversation of this cursor is gone: read from the beginning. */
export class StaleCursorError extends ConvoError {}
/** The conversation does not end where the caller expected. */
export class StaleHeadError extends ConvoError {
  /** The last seq of the conversation. */
  get actual(): number | undefined {
    return this.details.actual as number | undefined;
  }
}
/** More than a limit permits. */
export class LimitError extends ConvoError {}
/** The idempotency key was used for other content. */
export class KeyReusedError extends ConvoError {}
/** Nothing that the target takes, or no answer of the wire. */
export class UnprocessableError extends ConvoError {}
/** Too many requests or streams: wait. */
export class RateLimitError extends ConvoError {}
/** The server has no room now: wait. */
export class BusyError extends ConvoError {}
/** It is not known whether it was written: repeat it with the same idempotency key. */
export class OutcomeUnknownError extends ConvoError {}
/** The store takes no writes: an operator has to look. */
export class UnavailableError extends ConvoError {}
/** The server failed. */
export class ServerError extends ConvoError {}

type Class = typeof ConvoError;

const CODES: Record<string, Class> = {
  invalid_api_key: UnauthorizedError,
  missing_scope: ForbiddenError,
  not_found: NotFoundError,
  not_kept: NotFoundError,
  name_taken: ConflictError,
  shared_by_forks: ConflictError,
  message_closed: ConflictError,
  being_written: ConflictError,
  cursor_out_of_range: StaleCursorError,
  stale_cursor: StaleCursorError,
  stale_head: StaleHeadError,
  limit_exceeded: LimitError,
  too_large: LimitError,
  body_too_large: LimitError,
  key_reused: KeyReusedError,
  nothing_to_send: UnprocessableError,
  no_answer: UnprocessableError,
  rate_limit_exceeded: RateLimitError,
  too_many_streams: RateLimitError,
  busy: BusyError,
  outcome_unknown: OutcomeUnknownError,
  read_only: UnavailableError,
  closed: UnavailableError,
  poisoned: UnavailableError,
  went_back: UnavailableError,
  io: UnavailableError,
};

/** Of a code that is not known here, or none. */
const STATUSES: Record<number, Class> = {
  401: UnauthorizedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  410: StaleCursorError,
  413: LimitError,
  422: UnprocessableError,
  429: RateLimitError,
};

/** The error of an answer that is no success. */
export async function refused(response: Response): Promise<ConvoError> {
  const text = await response.text().catch(() => "");
  let refusal: Partial<Refusal> | undefined;
  try {
    refusal = JSON.parse(text).error;
  } catch {
    // What is before the server may answer in its place.
  }
  const message = refusal?.message ?? `the server answered ${response.status}: ${text.slice(0, 200)}`;
  const wait = Number(response.headers.get("retry-after") ?? NaN);
  const other = response.status < 500 ? InvalidRequestError : ServerError;
  const Kind = CODES[refusal?.code ?? ""] ?? STATUSES[response.status] ?? other;
  const id = response.headers.get("x-request-id") ?? undefined;
  return new Kind({ ...refusal, message }, response.status, Number.isNaN(wait) ? undefined : wait, id);
}
