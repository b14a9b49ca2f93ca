// Made by scripts/generate.mjs from `convo openapi`: not edited by hand.

export interface paths {
    "/api/v1/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check whether the target accepts a request
         * @description Scope: read.
         */
        post: operations["checkRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List conversations, newest activity first unless `sort` says otherwise
         * @description Scope: read.
         */
        get: operations["listNativeConversations"];
        put?: never;
        /**
         * Create a conversation without messages
         * @description Scope: append.
         */
        post: operations["createNativeConversation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Describe a conversation
         * @description Scope: read.
         */
        get: operations["getNativeConversation"];
        put?: never;
        post?: never;
        /**
         * Delete a conversation and erase it
         * @description Scope: delete.
         */
        delete: operations["deleteNativeConversation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/entries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the log itself
         * @description Scope: read.
         */
        get: operations["listEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow the log: server-sent events, id = seq; the stored entries, then new ones as they are written
         * @description Scope: read.
         */
        get: operations["followConversation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A conversation as a file, of this program's transcript or of another program's format
         * @description Scope: read.
         */
        get: operations["exportConversation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a conversation that shares the entries up to a seq
         * @description Scope: append.
         */
        post: operations["forkConversation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/ingest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Store a provider's answer while it arrives: its own bytes, whole or streamed
         * @description Scope: append.
         */
        post: operations["ingestAnswer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read messages, in order
         * @description Scope: read.
         */
        get: operations["listMessages"];
        put?: never;
        /**
         * Append one message, an array of messages, one per line (application/x-ndjson), or an object with messages and the title, tags and metadata that change with them: all or none
         * @description Scope: append.
         */
        post: operations["appendMessages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/messages/{message}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one message
         * @description Scope: read.
         */
        get: operations["getMessage"];
        put?: never;
        post?: never;
        /**
         * Hide one message or chunk; the log keeps it until it is redacted
         * @description Scope: delete.
         */
        delete: operations["removeMessage"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/messages/{message}/redact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Erase the content of one message or chunk
         * @description Scope: delete.
         */
        post: operations["redactMessage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Replace the metadata: a JSON object up to 64 KiB
         * @description Scope: append.
         */
        put: operations["setMetadata"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/next": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What an agent must do now
         * @description Scope: read.
         */
        get: operations["getNextStep"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/prompt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Render the conversation as a request that the target accepts, with the report
         * @description Scope: read.
         */
        get: operations["getPrompt"];
        put?: never;
        /**
         * As getPrompt, with tools to declare
         * @description Scope: read.
         */
        post: operations["renderPrompt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/rewind": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Hide every message from an index on
         * @description Scope: delete.
         */
        post: operations["rewindConversation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop the answers that are being written to the conversation, also through other servers of the store
         * @description Scope: append.
         */
        post: operations["stopAnswer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/summaries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let prompts use a summary in place of messages
         * @description Scope: append.
         */
        post: operations["summarizeConversation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/tags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remove tags, then add others
         * @description Scope: append.
         */
        post: operations["changeTags"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{conversation}/title": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set the title; null derives it from the first user text again
         * @description Scope: append.
         */
        put: operations["setTitle"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/exchanges/{exchange}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What has become of a call of a model that passed, by its x-convo-exchange
         * @description Scope: read.
         */
        get: operations["getExchange"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/exchanges/{exchange}/request": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The request that its answer answers, byte for byte as the client sent it
         * @description Scope: read.
         */
        get: operations["getExchangeRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/find": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find a provider's item id in all conversations of the key's owner; reads an index for each conversation of the store
         * @description Scope: read.
         */
        get: operations["findItem"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import another program's export; a second run adds what is new
         * @description Scope: append.
         */
        post: operations["importConversations"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/repair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Turn a refused request into one that the target accepts
         * @description Scope: read.
         */
        post: operations["repairRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find the messages and titles that have all of the words, the best first
         * @description Scope: read.
         */
        get: operations["searchConversations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/targets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The wires and dialects that for and from may name
         * @description Scope: read.
         */
        get: operations["listTargets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/unfinished": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Messages that are being written, or were interrupted
         * @description Scope: read.
         */
        get: operations["listUnfinished"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the stored answers, their tokens, and errors, page by page
         * @description Scope: read.
         */
        get: operations["getUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        AnswersStopped: {
            conversation: string;
            /** @description The messages that are written elsewhere, by their indexes: other servers of the store were asked to stop them. */
            elsewhere: number[];
            /** @description How many answers were ingested, and were stopped. */
            ingests: number;
            /** @description How many responses of models at upstreams were stopped. */
            responses: number;
            /** @description The exchanges whose answers were stopped. */
            stopped: string[];
        };
        /** @description The receipt of an append, and what of a provider's request could not be read as it is. */
        Appended: {
            /** @description The conversation's id. */
            conversation: string;
            /** @description Whether this was a repetition: nothing was written. */
            duplicate: boolean;
            /** @description Whether it survives a power cut already. */
            durable: boolean;
            /** @description The seq of the first entry. */
            first_seq: number;
            /** @description The seq of the last entry. */
            last_seq: number;
            /** @description The index of each message, in order. */
            message_indexes: number[];
            report?: {
                /** @description The chunk's index in the message. */
                chunk_index?: number;
                /** @description What to do about it, where something can be done. */
                cure?: string;
                /** @description What was done, in words. */
                detail: string;
                /** @description The message's index in the log. */
                message_index?: number;
                place?: string;
                /** @description What was done, for programs. */
                rule: "damaged_record" | "error_chunk_removed" | "empty_message_removed" | "result_moved" | "duplicate_result_removed" | "orphan_result_removed" | "outcome_unknown" | "not_run" | "pending_answered" | "streaming_taken_as_interrupted" | "surrogate_replaced" | "left_out" | "thinking_left_out" | "thinking_tagged" | "altered" | "origin_assumed" | "kept_by_server" | "finished_tool_flattened" | "finished_tool_dropped" | "summarized" | "outside_window" | "window_exceeded" | "arguments_repaired" | "signature_made" | "name_changed" | "call_as_text" | "media_moved" | "role_changed" | "turn_made" | "bridge_added" | "not_continued" | "field_added" | "still_refused";
                /** @description What it means for the reader. */
                severity: "lost" | "changed" | "moved" | "added" | "note";
                /** @description The tool call's id as it is stored, also where it is empty. */
                tool_call_id?: string;
                /** @description Why it was done, in words. */
                why?: string;
            }[];
        };
        /** Format: binary */
        Bytes: string;
        Checked: {
            accepted: boolean;
            findings: {
                /** @description What to do about it. */
                cure: string;
                /** @description Whether the request is refused. For a few rules it depends on the case, and may differ from the rule's own level. */
                level: "hard" | "hard?" | "soft" | "unknown";
                /** @description Path into the request, for example `messages[3].tool_calls`; empty for the request as a whole. */
                place: string;
                /** @description What is wrong with it. */
                problem: string;
                rule: string;
            }[];
        };
        /** @description A page of the list. */
        ConversationPage: {
            /** @description In the order that was asked for; of the same microsecond by id. */
            items: {
                /** @description Its id. */
                conversation: string;
                /** @description When it was made. */
                created_at: string;
                /** @description How many messages a rewind or a removal hides. */
                hidden?: number;
                /** @description Its key, if it was named by one. */
                key?: string;
                /** @description When something was appended last. */
                last_activity: string;
                /** @description Its last seq. */
                last_seq: number;
                /** @description How many messages it shows: those that were appended, without those that a rewind or a removal hides. */
                messages: number;
                /** @description Its owner; empty if it was made without one. */
                owner?: string;
                /** @description The conversation that it was forked from, and where. */
                parent?: {
                    /** @description The last seq that both share; 0 if they share none. */
                    at_seq: number;
                    /** @description The conversation that it was forked from. */
                    conversation: string;
                };
                /** @description Its tags. */
                tags?: string[];
                /** @description Its title: the caller's, else the first user text's first line. */
                title?: string;
            }[];
            /** @description Where the next page begins; absent on the last one. A page with filters may have few items, or none, and a next one: it ends where it has looked at 10,000 conversations. A conversation that moves while one pages may be missed or repeated. */
            next?: string;
            /** @description Conversations that belong here, and cannot be read. */
            unreadable?: {
                /** @description The conversation, where it is known. */
                conversation?: string;
                /** @description What does not fit. */
                detail: string;
                /** @description The seq, where it is known. */
                seq?: number;
            }[];
        };
        /** @description A conversation in the list. */
        Described: {
            /** @description Its id. */
            conversation: string;
            /** @description When it was made. */
            created_at: string;
            /** @description How many messages a rewind or a removal hides. */
            hidden?: number;
            /** @description Its key, if it was named by one. */
            key?: string;
            /** @description When something was appended last. */
            last_activity: string;
            /** @description Its last seq. */
            last_seq: number;
            /** @description How many messages it shows: those that were appended, without those that a rewind or a removal hides. */
            messages: number;
            metadata?: Record<string, unknown>;
            /** @description Its owner; empty if it was made without one. */
            owner?: string;
            /** @description The conversation that it was forked from, and where. */
            parent?: {
                /** @description The last seq that both share; 0 if they share none. */
                at_seq: number;
                /** @description The conversation that it was forked from. */
                conversation: string;
            };
            /** @description Its tags. */
            tags?: string[];
            /** @description Its title: the caller's, else the first user text's first line. */
            title?: string;
        };
        Entries: {
            /** @description Where the next page begins. */
            cursor: string;
            entries: {
                chunk?: Record<string, unknown>;
                chunk_index?: number;
                created_at: string;
                kind: string;
                message_index?: number;
                role?: string;
                seq: number;
            }[];
        };
        /** @description One event of the stream. Its data is an entry, as JSON; the last event is named close, and its data has reason, last_seq and cursor. */
        Events: {
            data: string;
            event?: string;
            /** @description The seq of the entry */
            id?: string;
            retry?: number;
        };
        /** @description A call of a model that passed. */
        Exchange: {
            /** @description Where the request is stored. */
            conversation?: string;
            /** @description The upstream's words for an error in place of an answer. */
            error?: string;
            /** @description Its id, as `x-convo-exchange` had it. */
            exchange: string;
            /** @description What the request was to what was recorded. */
            how?: ("new" | "continued" | "forked" | "attempt") | null;
            /** @description The answer, by its index. */
            message?: number;
            /** @description What has become of an exchange. */
            state: "started" | "complete" | "cut" | "queued" | "stopped" | "failed" | "too_fast" | "too_large" | "unreadable" | "no_session" | "store_failed";
            /** @description Of the upstream's answer. */
            status?: number;
        };
        Found: {
            items: {
                /** @description The chunk's index; absent where the id is the message's. */
                chunk_index?: number;
                /** @description The conversation that was asked, or found. */
                conversation: string;
                /** @description Its key, if it was named by one. */
                key?: string;
                /** @description The message's index. */
                message_index: number;
                /** @description The seq of the entry. */
                seq: number;
            }[];
        };
        Import: {
            /** @description The first 1,000 of the conversations. */
            conversations: {
                /** @description Forks for the other branches. */
                branches: number;
                /** @description Its id in the store. */
                conversation: string | null;
                /** @description Why it was not imported, or not completely. */
                error?: string;
                /** @description Its key in the store. */
                key: string | null;
                /** @description Messages of the shown branch. */
                messages: number;
                /** @description What was not imported unchanged: the count of each kind. */
                skipped: {
                    [key: string]: number;
                };
                /** @description Its id in the export, if it has one. */
                source_id: string | null;
                /** @description Its title. */
                title: string | null;
            }[];
            /** @description What somebody should know. */
            notes: string[];
            /** @description The result of an import. */
            sum: {
                /** @description Messages that were not stored before, those of forks included. */
                added: number;
                /** @description Forks. */
                branches: number;
                /** @description Conversations that were imported. */
                conversations: number;
                /** @description Conversations that failed. */
                failed: number;
                /** @description Messages of their shown branches. */
                messages: number;
                /** @description What was not imported unchanged: the count of each kind. */
                skipped: {
                    [key: string]: number;
                };
            };
        };
        /** @description The response once the answer has ended. */
        Ingested: {
            /** @description The conversation's id. */
            conversation: string;
            /** @description Whether this was a repetition: nothing was written. */
            duplicate: boolean;
            /** @description Whether it survives a power cut already. */
            durable: boolean;
            /** @description Why the model stopped; `interrupted` if its bytes ended before it did. */
            finish_reason?: string;
            /** @description The seq of the first entry. */
            first_seq: number;
            /** @description The seq of the last entry. */
            last_seq: number;
            /** @description The index of each message, in order. */
            message_indexes: number[];
        };
        /** @description A page of messages. */
        Messages: {
            messages: {
                /** @description The chunks' indexes in the log, for each chunk of the message, in the order of its chunks: 0-based, never reused. */
                chunk_indexes: number[];
                chunks: Record<string, unknown>[];
                /** @description The seq of its first entry. */
                first_seq: number;
                /** @description Its index in the conversation: 0-based, never reused; visible indices may have gaps. */
                index: number;
                /** @description The seq of its last entry. */
                last_seq: number;
                role: string;
                /** @description Whether it is complete. */
                state: "complete" | "streaming" | "interrupted" | "synthetic";
            }[];
            /** @description The index at which the next page begins, if there is more. */
            next?: number;
        };
        Metadata: Record<string, unknown>;
        NativeDeleted: {
            conversation: string;
            /** @constant */
            deleted: true;
        };
        NativeNew: {
            key?: string | null;
            metadata?: Record<string, unknown> | null;
            tags?: string[];
            title?: string | null;
        };
        NewFork: {
            at_seq?: number | null;
            key?: string | null;
        };
        NewMessages: {
            chunks: {
                type: string;
            }[];
            /** @enum {unknown} */
            role: "system" | "user" | "assistant" | "tool";
        } | {
            chunks: {
                type: string;
            }[];
            /** @enum {unknown} */
            role: "system" | "user" | "assistant" | "tool";
        }[] | {
            messages: {
                chunks: {
                    type: string;
                }[];
                /** @enum {unknown} */
                role: "system" | "user" | "assistant" | "tool";
            }[];
            metadata?: Record<string, unknown>;
            tags?: {
                add?: string[];
                remove?: string[];
            };
            title?: string;
        };
        NewSummary: {
            text: string;
            through: number;
        };
        /** @description What an agent loop must do now. */
        NextStep: {
            calls: {
                [key: string]: unknown;
            }[];
            /** @constant */
            step: "run_tools";
        } | {
            /** @constant */
            step: "call_model";
        } | {
            /** @constant */
            step: "call_model_again";
        } | {
            /** @constant */
            step: "continue_text";
        } | {
            /** @constant */
            step: "continue_turn";
        } | {
            /** @constant */
            step: "await_model";
        } | {
            /** @constant */
            step: "await_user";
        };
        Prompt: {
            conversation: string;
            report: {
                /** @description The chunk's index in the message. */
                chunk_index?: number;
                /** @description What to do about it, where something can be done. */
                cure?: string;
                /** @description What was done, in words. */
                detail: string;
                /** @description The message's index in the log. */
                message_index?: number;
                place?: string;
                /** @description What was done, for programs. */
                rule: "damaged_record" | "error_chunk_removed" | "empty_message_removed" | "result_moved" | "duplicate_result_removed" | "orphan_result_removed" | "outcome_unknown" | "not_run" | "pending_answered" | "streaming_taken_as_interrupted" | "surrogate_replaced" | "left_out" | "thinking_left_out" | "thinking_tagged" | "altered" | "origin_assumed" | "kept_by_server" | "finished_tool_flattened" | "finished_tool_dropped" | "summarized" | "outside_window" | "window_exceeded" | "arguments_repaired" | "signature_made" | "name_changed" | "call_as_text" | "media_moved" | "role_changed" | "turn_made" | "bridge_added" | "not_continued" | "field_added" | "still_refused";
                /** @description What it means for the reader. */
                severity: "lost" | "changed" | "moved" | "added" | "note";
                /** @description The tool call's id as it is stored, also where it is empty. */
                tool_call_id?: string;
                /** @description Why it was done, in words. */
                why?: string;
            }[];
            request: Record<string, unknown>;
        };
        /** @description The tools to declare. */
        PromptTools: {
            tools?: {
                description?: string | null;
                name: string;
                parameters: Record<string, unknown>;
            }[];
        };
        /** @description What an append got. */
        Receipt: {
            /** @description The conversation's id. */
            conversation: string;
            /** @description Whether this was a repetition: nothing was written. */
            duplicate: boolean;
            /** @description Whether it survives a power cut already. */
            durable: boolean;
            /** @description The seq of the first entry. */
            first_seq: number;
            /** @description The seq of the last entry. */
            last_seq: number;
            /** @description The index of each message, in order. */
            message_indexes: number[];
        };
        /** @description What a redaction did. */
        Redaction: {
            /** @description Answers, by their indexes, with which the proxy keeps what a client sent in the place of earlier messages. That may quote it, and goes with a redaction of the answer. */
            answers?: number[];
            /** @description The seqs of entries with a title, tags or metadata, which may quote it: they stay as they are. */
            meta: number[];
            /** @description The seq of the entry that notes it. */
            seq: number;
            /** @description The seqs of summaries that may quote what was redacted: they stay as they are. */
            summaries: number[];
        };
        Repaired: {
            report: {
                /** @description The chunk's index in the message. */
                chunk_index?: number;
                /** @description What to do about it, where something can be done. */
                cure?: string;
                /** @description What was done, in words. */
                detail: string;
                /** @description The message's index in the log. */
                message_index?: number;
                place?: string;
                /** @description What was done, for programs. */
                rule: "damaged_record" | "error_chunk_removed" | "empty_message_removed" | "result_moved" | "duplicate_result_removed" | "orphan_result_removed" | "outcome_unknown" | "not_run" | "pending_answered" | "streaming_taken_as_interrupted" | "surrogate_replaced" | "left_out" | "thinking_left_out" | "thinking_tagged" | "altered" | "origin_assumed" | "kept_by_server" | "finished_tool_flattened" | "finished_tool_dropped" | "summarized" | "outside_window" | "window_exceeded" | "arguments_repaired" | "signature_made" | "name_changed" | "call_as_text" | "media_moved" | "role_changed" | "turn_made" | "bridge_added" | "not_continued" | "field_added" | "still_refused";
                /** @description What it means for the reader. */
                severity: "lost" | "changed" | "moved" | "added" | "note";
                /** @description The tool call's id as it is stored, also where it is empty. */
                tool_call_id?: string;
                /** @description Why it was done, in words. */
                why?: string;
            }[];
            /** @description A request; where a list of messages was given, a list of messages. */
            request: unknown;
        };
        /** @description A provider's request, or its list of messages. What is neither is a finding, too. */
        Request: unknown;
        Rewind: {
            to: number;
        };
        /** @description What a search found. */
        SearchPage: {
            /** @description The best first. */
            hits: {
                /** @description The chunk that is the call or the result. */
                chunk_index?: number;
                /** @description Its conversation. */
                conversation: string;
                /** @description When it was said. */
                created_at?: string;
                /** @description The text around the first word found, on one line. */
                excerpt: string;
                /** @description Where the words are. */
                found_in: "title" | "text" | "call" | "result";
                /** @description The conversation's key, if it was named by one. */
                key?: string;
                /** @description The message index. Absent: the title has the words. */
                message_index?: number;
                /** @description The same, parted: what was searched for is marked. */
                pieces: {
                    /** @description Whether it was searched for. */
                    match?: boolean;
                    /** @description Its text. */
                    text: string;
                }[];
                /** @description The message's role. */
                role?: string;
                /** @description How well it fits: higher is better. Only hits of one search can be compared. */
                score: number;
                /** @description The seq of the message's first entry. */
                seq?: number;
                /** @description The conversation's title. */
                title?: string;
            }[];
            /** @description Where the next page begins; absent on the last one. What changes while one pages may be missed or repeated. */
            next?: string;
        };
        /** @description A message in its place. */
        StoredMessage: {
            /** @description The chunks' indexes in the log, for each chunk of the message, in the order of its chunks: 0-based, never reused. */
            chunk_indexes: number[];
            chunks: Record<string, unknown>[];
            /** @description The seq of its first entry. */
            first_seq: number;
            /** @description Its index in the conversation: 0-based, never reused; visible indices may have gaps. */
            index: number;
            /** @description The seq of its last entry. */
            last_seq: number;
            role: string;
            /** @description Whether it is complete. */
            state: "complete" | "streaming" | "interrupted" | "synthetic";
        };
        TagChange: {
            add?: string[];
            remove?: string[];
        };
        Tags: {
            tags: string[];
        };
        /** @description The wires and dialects that `for` and `from` may name. */
        Targets: {
            targets: string[];
        };
        Title: {
            title?: string | null;
        };
        Unfinished: {
            messages: {
                /** @description Its conversation. */
                conversation: string;
                /** @description The conversation's key, if it was named by one. */
                key?: string;
                /** @description The message's index. */
                message_index: number;
                /** @description The conversation's owner; empty if it has none. */
                owner?: string;
                /** @description Streaming, or interrupted. */
                state: "complete" | "streaming" | "interrupted" | "synthetic";
            }[];
        };
        /** @description What a part of the conversations has: those that were used last, or those that come after them. */
        UsagePage: {
            /** @description Where the next page begins; absent on the last one. */
            next?: string;
            /** @description In the order of day, model, conversation, and kind of error. The next page may have more of the same. */
            rows: {
                /** @description The answers of which tokens are known. */
                answers: number;
                /** @description Of the input, what was written to a cache. Only Anthropic and Amazon count it. */
                cache_written: number;
                /** @description Of the input, what was read from a cache. */
                cached: number;
                /** @description The conversation, if they are counted apart. */
                conversation?: string;
                /** @description The day, `2026-11-25`, if days are counted apart. */
                day?: string;
                /** @description The kind of the errors, if kinds are counted apart: the code of the error, of at most 100 characters; `unknown` if it has none; `interrupted` for an answer that was interrupted. Empty in the rows of answers. */
                error?: string;
                /** @description The errors. */
                errors: number;
                /** @description All that the model read, those from a cache too. */
                input: number;
                /** @description The model, if models are counted apart; empty if none is known. */
                model?: string;
                /** @description All that the model wrote, its reasoning too. */
                output: number;
                /** @description Of the output, the reasoning, where it is counted apart. */
                reasoning: number;
                /** @description The answers of which no tokens are known. */
                uncounted: number;
            }[];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    checkRequest: {
        parameters: {
            query: {
                /** @description The target: a wire, or a wire and its dialect, as in openai-chat/mistral */
                for: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "messages": [
                 *         {
                 *           "content": "hello",
                 *           "role": "user"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["Request"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "accepted": true,
                     *       "findings": []
                     *     }
                     */
                    "application/json": components["schemas"]["Checked"];
                };
            };
        };
    };
    listNativeConversations: {
        parameters: {
            query?: {
                /** @description The most conversations: 1 to 1,000; 50 by default */
                limit?: number;
                /** @description The `next` of the previous page */
                after?: string;
                /** @description Only titles that hold this text */
                title?: string;
                /** @description Only those with this tag; may be given several times */
                tag?: string;
                /** @description Only those with a key that begins so */
                key_prefix?: string;
                /** @description Only those that were forked from the conversation of this id */
                forked_from?: string;
                /** @description Only those whose metadata have these fields: `metadata[NAME]=VALUE`, a text, or another value's JSON */
                metadata?: {
                    [key: string]: unknown;
                };
                /** @description Only those that were active last at this time or after it: RFC 3339, or a day */
                since?: string;
                /** @description Only those that were active last before this time: RFC 3339, or a day */
                until?: string;
                /** @description newest activity, oldest activity, or last created first */
                sort?: "newest" | "oldest" | "created";
                /** @description Whose; the key's own by default. To name another one needs the scope admin */
                owner?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *           "created_at": "2026-11-22T09:00:00.000000Z",
                     *           "key": "chat-42",
                     *           "last_activity": "2026-11-22T09:00:00.000000Z",
                     *           "last_seq": 1,
                     *           "messages": 0,
                     *           "title": "Plans"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ConversationPage"];
                };
            };
        };
    };
    createNativeConversation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "key": "chat-42",
                 *       "title": "Plans"
                 *     }
                 */
                "application/json": components["schemas"]["NativeNew"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "created_at": "2026-11-22T09:00:00.000000Z",
                     *       "key": "chat-42",
                     *       "last_activity": "2026-11-22T09:00:00.000000Z",
                     *       "last_seq": 1,
                     *       "messages": 0,
                     *       "title": "Plans"
                     *     }
                     */
                    "application/json": components["schemas"]["Described"];
                };
            };
        };
    };
    getNativeConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "created_at": "2026-11-22T09:00:00.000000Z",
                     *       "key": "chat-42",
                     *       "last_activity": "2026-11-22T09:00:00.000000Z",
                     *       "last_seq": 1,
                     *       "messages": 0,
                     *       "title": "Plans"
                     *     }
                     */
                    "application/json": components["schemas"]["Described"];
                };
            };
        };
    };
    deleteNativeConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "deleted": true
                     *     }
                     */
                    "application/json": components["schemas"]["NativeDeleted"];
                };
            };
        };
    };
    listEntries: {
        parameters: {
            query?: {
                /** @description Only entries after this seq */
                since?: string;
                /** @description The most entries: 1 to 1,000, the default */
                limit?: number;
            };
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "cursor": "1-0000000000100004",
                     *       "entries": [
                     *         {
                     *           "chunk": {
                     *             "text": "hello",
                     *             "type": "text"
                     *           },
                     *           "chunk_index": 0,
                     *           "created_at": "2026-11-22T09:00:00.000000Z",
                     *           "kind": "chunk",
                     *           "message_index": 0,
                     *           "role": "user",
                     *           "seq": 1
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Entries"];
                };
            };
        };
    };
    followConversation: {
        parameters: {
            query?: {
                /** @description Only entries after this seq; 0 is the beginning */
                since?: string;
            };
            header?: {
                /** @description The last id that the client saw; it overrides since */
                "Last-Event-ID"?: string;
            };
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": "{\"seq\":1}",
                     *       "id": "1"
                     *     }
                     */
                    "text/event-stream": components["schemas"]["Events"];
                };
            };
        };
    };
    exportConversation: {
        parameters: {
            query?: {
                /** @description The format; transcript by default, which leaves nothing out */
                format?: "transcript" | "claude-code" | "codex" | "open-webui" | "ai-sdk" | "openai-finetune" | "sharegpt" | "langchain" | "openai-items" | "markdown" | "html";
            };
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {"conversation":"chat-43","role":"user","chunks":[{"type":"text","text":"hello"}]} */
                    "application/octet-stream": components["schemas"]["Bytes"];
                };
            };
        };
    };
    forkConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "at_seq": 1
                 *     }
                 */
                "application/json": components["schemas"]["NewFork"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "created_at": "2026-11-22T09:00:00.000000Z",
                     *       "key": "chat-42",
                     *       "last_activity": "2026-11-22T09:00:00.000000Z",
                     *       "last_seq": 1,
                     *       "messages": 0,
                     *       "title": "Plans"
                     *     }
                     */
                    "application/json": components["schemas"]["Described"];
                };
            };
        };
    };
    ingestAnswer: {
        parameters: {
            query: {
                /** @description The wire of the answer, or the wire and its dialect */
                from: string;
                /** @description The provider of the answer, if it is not the wire's vendor */
                provider?: string;
                /** @description The model, if the answer does not name it */
                model?: string;
                /** @description The last seq that the conversation must have, a cursor at its end, or new */
                expect?: string;
            };
            header?: {
                /** @description A repetition with the same key and content changes nothing and gets the first receipt */
                "Idempotency-Key"?: string;
            };
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}
                 *
                 *     data: [DONE]
                 */
                "application/octet-stream": components["schemas"]["Bytes"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "duplicate": false,
                     *       "durable": true,
                     *       "finish_reason": "stop",
                     *       "first_seq": 2,
                     *       "last_seq": 4,
                     *       "message_indexes": [
                     *         1
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Ingested"];
                };
            };
        };
    };
    listMessages: {
        parameters: {
            query?: {
                /** @description The first message index */
                from?: number;
                /** @description The most messages: 1 to 1,000; 100 by default */
                limit?: number;
                /** @description The newest messages, 1 to 100 of them, in place of from and limit; fewer if they are over 16 MiB */
                newest?: number;
            };
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "messages": [
                     *         {
                     *           "chunk_indexes": [
                     *             0
                     *           ],
                     *           "chunks": [
                     *             {
                     *               "text": "hello",
                     *               "type": "text"
                     *             }
                     *           ],
                     *           "created_at": "2026-11-22T09:00:00.000000Z",
                     *           "first_seq": 1,
                     *           "index": 0,
                     *           "last_seq": 1,
                     *           "role": "user",
                     *           "state": "complete"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Messages"];
                };
            };
        };
    };
    appendMessages: {
        parameters: {
            query?: {
                /** @description The last seq that the conversation must have, a cursor at its end, or new */
                expect?: string;
                /** @description buffered: answered before it is on disk; a crash may lose the last 25 ms */
                durability?: "durable" | "buffered";
                /** @description The body is a request of this wire, or the array of its messages: they are appended; nothing else of it is */
                from?: string;
            };
            header?: {
                /** @description A repetition with the same key and content changes nothing and gets the first receipt */
                "Idempotency-Key"?: string;
            };
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "chunks": [
                 *         {
                 *           "text": "hello",
                 *           "type": "text"
                 *         }
                 *       ],
                 *       "role": "user"
                 *     }
                 */
                "application/json": components["schemas"]["NewMessages"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "duplicate": false,
                     *       "durable": true,
                     *       "first_seq": 1,
                     *       "last_seq": 1,
                     *       "message_indexes": [
                     *         0
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Appended"];
                };
            };
        };
    };
    getMessage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
                message: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "chunk_indexes": [
                     *         0
                     *       ],
                     *       "chunks": [
                     *         {
                     *           "text": "hello",
                     *           "type": "text"
                     *         }
                     *       ],
                     *       "created_at": "2026-11-22T09:00:00.000000Z",
                     *       "first_seq": 1,
                     *       "index": 0,
                     *       "last_seq": 1,
                     *       "role": "user",
                     *       "state": "complete"
                     *     }
                     */
                    "application/json": components["schemas"]["StoredMessage"];
                };
            };
        };
    };
    removeMessage: {
        parameters: {
            query?: {
                /** @description One chunk of the message; all of it by default */
                chunk?: number;
            };
            header?: never;
            path: {
                conversation: string;
                message: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "duplicate": false,
                     *       "durable": true,
                     *       "first_seq": 2,
                     *       "last_seq": 2,
                     *       "message_indexes": []
                     *     }
                     */
                    "application/json": components["schemas"]["Receipt"];
                };
            };
        };
    };
    redactMessage: {
        parameters: {
            query?: {
                /** @description One chunk of the message; all of it by default */
                chunk?: number;
            };
            header?: never;
            path: {
                conversation: string;
                message: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "meta": [],
                     *       "seq": 2,
                     *       "summaries": []
                     *     }
                     */
                    "application/json": components["schemas"]["Redaction"];
                };
            };
        };
    };
    setMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "project": 7
                 *     }
                 */
                "application/json": components["schemas"]["Metadata"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "duplicate": false,
                     *       "durable": true,
                     *       "first_seq": 2,
                     *       "last_seq": 2,
                     *       "message_indexes": []
                     *     }
                     */
                    "application/json": components["schemas"]["Receipt"];
                };
            };
        };
    };
    getNextStep: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "step": "call_model"
                     *     }
                     */
                    "application/json": components["schemas"]["NextStep"];
                };
            };
        };
    };
    getPrompt: {
        parameters: {
            query: {
                /** @description The target: a wire, or a wire and its dialect, as in openai-chat/mistral */
                for: string;
                /** @description As it was at this seq: what would have been sent then */
                at?: number;
                /** @description The model of the request. Thinking is sent natively only to the model that produced it */
                model?: string;
                /** @description How to send thinking: in the target's own form, as text in `<think>` tags, or not at all */
                thinking?: "native" | "tagged" | "omit";
                /** @description Send thinking only of the user's last turns: of at least N; older thinking is left out in steps of N turns; 0: none */
                thinking_turns?: number;
                /** @description The most bytes of text in a tool result: of a longer one, send the beginning and a line that states the rest */
                max_result_bytes?: number;
                /** @description How to send images: natively, or as words in their place, for models that refuse images */
                images?: "send" | "omit";
                /** @description How to send tool calls from before the user's last message: as they are, written as text, or not at all */
                finished_tools?: "keep" | "flatten" | "drop";
                /** @description The content of a message that has only calls, on openai-chat: null, or an empty string */
                no_content?: "null" | "empty";
                /** @description Whether the model is to go on with an answer that ends the conversation: by a prefill or a prefix, where the target has one; elsewhere the user asks for it, and the report says so */
                continue_last?: "no" | "yes";
                /** @description The most messages, without system messages: the newest, beginning with a user message */
                last?: number;
                /** @description The most turns of the user: the newest */
                last_turns?: number;
                /** @description The most tokens, estimated: the newest turns that fit, together with system messages and tools */
                window_tokens?: number;
            };
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "report": [],
                     *       "request": {
                     *         "messages": [
                     *           {
                     *             "content": "hello",
                     *             "role": "user"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Prompt"];
                };
            };
        };
    };
    renderPrompt: {
        parameters: {
            query: {
                /** @description The target: a wire, or a wire and its dialect, as in openai-chat/mistral */
                for: string;
                /** @description As it was at this seq: what would have been sent then */
                at?: number;
                /** @description The model of the request. Thinking is sent natively only to the model that produced it */
                model?: string;
                /** @description How to send thinking: in the target's own form, as text in `<think>` tags, or not at all */
                thinking?: "native" | "tagged" | "omit";
                /** @description Send thinking only of the user's last turns: of at least N; older thinking is left out in steps of N turns; 0: none */
                thinking_turns?: number;
                /** @description The most bytes of text in a tool result: of a longer one, send the beginning and a line that states the rest */
                max_result_bytes?: number;
                /** @description How to send images: natively, or as words in their place, for models that refuse images */
                images?: "send" | "omit";
                /** @description How to send tool calls from before the user's last message: as they are, written as text, or not at all */
                finished_tools?: "keep" | "flatten" | "drop";
                /** @description The content of a message that has only calls, on openai-chat: null, or an empty string */
                no_content?: "null" | "empty";
                /** @description Whether the model is to go on with an answer that ends the conversation: by a prefill or a prefix, where the target has one; elsewhere the user asks for it, and the report says so */
                continue_last?: "no" | "yes";
                /** @description The most messages, without system messages: the newest, beginning with a user message */
                last?: number;
                /** @description The most turns of the user: the newest */
                last_turns?: number;
                /** @description The most tokens, estimated: the newest turns that fit, together with system messages and tools */
                window_tokens?: number;
            };
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "tools": []
                 *     }
                 */
                "application/json": components["schemas"]["PromptTools"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "report": [],
                     *       "request": {
                     *         "messages": [
                     *           {
                     *             "content": "hello",
                     *             "role": "user"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Prompt"];
                };
            };
        };
    };
    rewindConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "to": 0
                 *     }
                 */
                "application/json": components["schemas"]["Rewind"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "duplicate": false,
                     *       "durable": true,
                     *       "first_seq": 2,
                     *       "last_seq": 2,
                     *       "message_indexes": []
                     *     }
                     */
                    "application/json": components["schemas"]["Receipt"];
                };
            };
        };
    };
    stopAnswer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "elsewhere": [],
                     *       "ingests": 1,
                     *       "responses": 0,
                     *       "stopped": []
                     *     }
                     */
                    "application/json": components["schemas"]["AnswersStopped"];
                };
            };
        };
    };
    summarizeConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "text": "They greeted.",
                 *       "through": 0
                 *     }
                 */
                "application/json": components["schemas"]["NewSummary"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "duplicate": false,
                     *       "durable": true,
                     *       "first_seq": 2,
                     *       "last_seq": 2,
                     *       "message_indexes": []
                     *     }
                     */
                    "application/json": components["schemas"]["Receipt"];
                };
            };
        };
    };
    changeTags: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "add": [
                 *         "work"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["TagChange"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "tags": [
                     *         "work"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Tags"];
                };
            };
        };
    };
    setTitle: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "title": "Plans"
                 *     }
                 */
                "application/json": components["schemas"]["Title"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "duplicate": false,
                     *       "durable": true,
                     *       "first_seq": 2,
                     *       "last_seq": 2,
                     *       "message_indexes": []
                     *     }
                     */
                    "application/json": components["schemas"]["Receipt"];
                };
            };
        };
    };
    getExchange: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                exchange: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5c",
                     *       "exchange": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *       "how": "continued",
                     *       "message": 3,
                     *       "state": "complete",
                     *       "status": 200
                     *     }
                     */
                    "application/json": components["schemas"]["Exchange"];
                };
            };
        };
    };
    getExchangeRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                exchange: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "messages": [
                     *         {
                     *           "content": "hello",
                     *           "role": "user"
                     *         }
                     *       ],
                     *       "model": "m-1"
                     *     }
                     */
                    "application/json": components["schemas"]["Metadata"];
                };
            };
        };
    };
    findItem: {
        parameters: {
            query: {
                /** @description The item id */
                item: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": []
                     *     }
                     */
                    "application/json": components["schemas"]["Found"];
                };
            };
        };
    };
    importConversations: {
        parameters: {
            query?: {
                /** @description The format, if it should not be recognised from the file */
                format?: string;
                /** @description all, the default: each branch that was not shown is a fork */
                branches?: "all" | "current";
                /** @description The most conversations */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {"conversation":"chat-43","role":"user","chunks":[{"type":"text","text":"hello"}]} */
                "application/octet-stream": components["schemas"]["Bytes"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversations": [
                     *         {
                     *           "branches": 0,
                     *           "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *           "key": "chat-43",
                     *           "messages": 1,
                     *           "skipped": {},
                     *           "source_id": "chat-43",
                     *           "title": "hello"
                     *         }
                     *       ],
                     *       "notes": [],
                     *       "sum": {
                     *         "added": 1,
                     *         "branches": 0,
                     *         "conversations": 1,
                     *         "failed": 0,
                     *         "messages": 1,
                     *         "skipped": {}
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Import"];
                };
            };
        };
    };
    repairRequest: {
        parameters: {
            query: {
                /** @description The target: a wire, or a wire and its dialect, as in openai-chat/mistral */
                for: string;
                /** @description The wire of the request; by default that of `for` */
                from?: string;
                /** @description The model's name, for a request of another wire */
                model?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "messages": [
                 *         {
                 *           "content": "hello",
                 *           "role": "user"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["Request"];
            };
        };
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "report": [],
                     *       "request": {
                     *         "messages": [
                     *           {
                     *             "content": "hello",
                     *             "role": "user"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Repaired"];
                };
            };
        };
    };
    searchConversations: {
        parameters: {
            query: {
                /** @description The words, with whatever endings; in double quotes as they are, one after the other */
                q: string;
                /** @description Where: texts (the default), calls, results, with commas */
                in?: string;
                /** @description Only in this conversation */
                conversation?: string;
                /** @description Only in conversations with this tag; given twice, with both */
                tag?: string;
                /** @description Only what somebody of this role said */
                role?: "system" | "user" | "assistant" | "tool";
                /** @description Only what was said from this day, UTC, or time on */
                since?: string;
                /** @description Only what was said before this day or time */
                until?: string;
                /** @description The most hits: 1 to 100; 20 by default */
                limit?: number;
                /** @description The `next` of the previous page */
                after?: string;
                /** @description Whose; the key's own by default. To name another one needs the scope admin */
                owner?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "hits": [
                     *         {
                     *           "conversation": "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
                     *           "created_at": "2026-11-22T09:00:00.000000Z",
                     *           "excerpt": "hello world",
                     *           "found_in": "text",
                     *           "key": "chat-42",
                     *           "message_index": 0,
                     *           "pieces": [
                     *             {
                     *               "match": true,
                     *               "text": "hello"
                     *             },
                     *             {
                     *               "text": " world"
                     *             }
                     *           ],
                     *           "role": "user",
                     *           "score": 1.5,
                     *           "seq": 1,
                     *           "title": "Plans"
                     *         }
                     *       ],
                     *       "next": "1"
                     *     }
                     */
                    "application/json": components["schemas"]["SearchPage"];
                };
            };
        };
    };
    listTargets: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "targets": [
                     *         "openai-chat",
                     *         "anthropic"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Targets"];
                };
            };
        };
    };
    listUnfinished: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "messages": []
                     *     }
                     */
                    "application/json": components["schemas"]["Unfinished"];
                };
            };
        };
    };
    getUsage: {
        parameters: {
            query?: {
                /** @description What is counted apart: day, model, conversation, error, with commas */
                by?: string;
                /** @description Only answers from this day, UTC, or time on */
                since?: string;
                /** @description Only answers before this day or time */
                until?: string;
                /** @description Only in conversations with this tag; given twice, with both */
                tag?: string;
                /** @description The `next` of the previous page */
                after?: string;
                /** @description Whose; the key's own by default. To name another one needs the scope admin */
                owner?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "rows": [
                     *         {
                     *           "answers": 2,
                     *           "cache_written": 0,
                     *           "cached": 1000,
                     *           "day": "2026-11-25",
                     *           "errors": 1,
                     *           "input": 1200,
                     *           "model": "m-1",
                     *           "output": 80,
                     *           "reasoning": 0,
                     *           "uncounted": 0
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["UsagePage"];
                };
            };
        };
    };
}
