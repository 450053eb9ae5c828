"""The kinds of mistakes that people make in a pack: each makes all its mutants of a golden pack (mutations.py).

A kind says for every place where it can be made which diagnostics must come of it, no more and no fewer, or by
which rule of the language the source is sound still.
"""

from collections.abc import Callable, Iterator
from typing import Final

import mistakes_in_calls as calls
import mistakes_in_graphs as graphs
import mistakes_in_texts as texts
from mutations import Mutant, Pack

KINDS: Final[tuple[Callable[[Pack], Iterator[Mutant]], ...]] = (
    calls.misspelt_constructor,
    calls.misspelt_use,
    calls.misspelt_binding,
    calls.misspelt_method,
    calls.misspelt_argument,
    calls.argument_of_another,
    calls.argument_dropped,
    calls.argument_repeated,
    calls.argument_without_its_name,
    calls.one_too_many_by_place,
    calls.wrong_type,
    calls.none_for_a_required_argument,
    calls.bare_value_for_a_list,
    calls.unknown_value,
    calls.unknown_value_added,
    calls.out_of_range,
    calls.not_finite,
    calls.half_of_a_pair,
    calls.text_of_a_task,
    calls.lane_not_literal,
    calls.element_of_the_wrong_type,
    calls.element_duplicated,
    calls.misspelt_dependency,
    calls.misspelt_task,
    calls.invalid_field,
    calls.score_not_emitted,
    graphs.self_dependency,
    graphs.dependency_on_a_later_task,
    graphs.advisory_task,
    graphs.required_again,
    graphs.joins_passed,
    graphs.other_stage,
    graphs.dependency_dropped,
    graphs.task_not_listed,
    graphs.task_nobody_lists,
    graphs.no_task_at_all,
    graphs.name_of_another_task,
    graphs.faulty_name,
    graphs.reserved_name,
    graphs.other_result,
    graphs.other_source,
    graphs.misspelt_session,
    graphs.session_mistakes,
    graphs.session_and_isolated,
    graphs.session_contradicted,
    texts.misspelt_prompt,
    texts.refused_prompt,
    texts.load_mistakes,
    texts.params_mistakes,
    texts.external_text,
    texts.failing_statement,
    texts.code_after_the_workflow,
    texts.second_workflow,
    texts.no_workflow,
    texts.bracket_dropped,
    texts.comma_dropped,
    texts.quote_dropped,
    texts.colon_dropped,
    texts.equals_dropped,
    texts.indented_by_one,
    texts.tab_for_blanks,
    texts.odd_bytes,
    texts.nested_too_deep,
)
